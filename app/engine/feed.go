package engine

import (
	"io"

	"posttrade/blotter"
	"posttrade/blotter/feed"
	"posttrade/journal"
)

// NewFeed makes the live feed of a running engine. render writes an event's document. Close it
// before End.
//
// The feed derives its events from a second engine that follows the journal, so readers cost the
// path of an order nothing. render appends to b and returns it. report gets errors after which the
// next reader begins the feed again. maxReaders bounds the readers.
func (c *Engine) NewFeed(render func(b []byte, e *feed.Event) []byte, maxReaders int,
	report func(error)) *feed.Hub {
	engines := RebuildFrom(c.Genesis)
	// The feed may show only what is durable: Watermark tells it how far that is.
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
//
// A nil image means that the second engine begins at the genesis, too. Image and engine state come
// from the same snapshot.
func (c *Engine) views(image io.Reader) (*blotter.Views, error) {
	if image == nil {
		return blotter.NewViews(c.Genesis)
	}
	return blotter.ReadImage(c.Genesis, image)
}
