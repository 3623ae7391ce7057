package recon

import (
	"context"

	"posttrade/sidecars/store"
)

// VerifyStep compares a page of swept entries again, with the journal itself, and starts again from
// the first after the last of them. Its cursor is durable.
//
// A step is a page of entries, one chunk. It sees what the sweep cannot: a row that was changed or
// deleted by hand after the sweep had passed. Any goroutine may call it.
func (r *Recon) VerifyStep(ctx context.Context) error {
	c := clock{r.nowMillis(), r.o.Grace.Milliseconds()}
	_, head := r.o.Journal.Head()
	w := walk{
		name: "verify", fills: r.entries.fromJournal, maxRows: 1,
		plan: func(_ *store.Tx, b *books) ([]span, error) {
			last := min(b.swept, head) // the sweep handles a shorter journal
			from := b.verified + 1
			if from > last {
				from = 1
			}
			if last == 0 {
				return nil, nil
			}
			return []span{{from, min(last, from+r.bounds.page-1)}}, nil
		},
		moved: func(b *books, done uint64) {
			if b.verified = done; done >= b.swept {
				b.verified = 0
			}
		},
	}
	_, err := again(func() (progress, error) { return r.chunk(ctx, &w, c) })
	return err
}
