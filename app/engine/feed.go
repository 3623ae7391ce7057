package engine

import (
	"io"

	"posttrade/blotter"
	"posttrade/blotter/feed"
	"posttrade/journal"
)

// NewFeed makes the live feed of a running engine. render writes an event's document. Close it
// before End.
func (c *Engine) NewFeed(render func(b []byte, e *feed.Event) []byte, maxReaders int,
	report func(error)) *feed.Hub {
	engines := RebuildFrom(c.Genesis)
	return feed.New(feed.Options{
		Journal: c.Journal, Durable: &c.Watermark, Render: render, MaxReaders: maxReaders,
		Report: report,
		Rebuild: func(wrap func(v *blotter.Views) journal.Views) journal.Rebuild {
			return journal.Rebuild{Engine: engines.Engine,
				Views: func(image io.Reader) (journal.Views, error) {
					v, err := c.views(image)
					if err != nil {
						return nil, err
					}
					return wrap(v), nil
				}}
		},
	})
}

// views makes views from an image, or at the genesis.
func (c *Engine) views(image io.Reader) (*blotter.Views, error) {
	if image == nil {
		return blotter.NewViews(c.Genesis)
	}
	return blotter.ReadImage(c.Genesis, image)
}
