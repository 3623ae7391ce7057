package asof

import (
	"io"

	"posttrade/blotter"
	"posttrade/journal"
	"posttrade/matcher"
)

// Image gives the views the form in which the journal writes them beside a snapshot.
//
// The wrapper is needed because journal.Views has a Write of another shape than io.WriterTo.
type Image struct{ *blotter.Views }

// Write implements journal.Views.
func (v Image) Write(w io.Writer) error {
	_, err := v.WriteTo(w)
	return err
}

// Rebuild makes engines and views for recovery, snapshots, verification and moments. The engines
// are of type *matcher.Engine, the views of type Image.
//
// A nil reader means the genesis. g must not change as long as the Rebuild is used.
func Rebuild(g *matcher.Genesis) journal.Rebuild {
	return journal.Rebuild{
		Engine: func(state io.Reader) (journal.Engine, error) {
			if state == nil {
				return matcher.New(g)
			}
			return matcher.ReadSnapshot(g, state)
		},
		Views: func(image io.Reader) (journal.Views, error) {
			var v *blotter.Views
			var err error
			if image == nil {
				v, err = blotter.NewViews(g)
			} else {
				v, err = blotter.ReadImage(g, image)
			}
			return Image{v}, err
		},
	}
}
