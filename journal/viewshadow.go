package journal

import (
	"context"
	"fmt"
)

// NewViewShadow is NewShadow for a shadow with views, if rebuild has them. A snapshot without an
// image of the views is passed over: the views could not be made from it.
func NewViewShadow(j *Journal, rebuild Rebuild, before uint64) (*Shadow, error) {
	sh, _, err := newShadow(j, rebuild, before, j.report)
	return sh, err
}

// WaitHead returns nil when the durable head in the store has reached inputSeq. Any goroutine; it
// blocks, and syncs nothing. Errors: the poison, ErrClosed, ErrReading, ctx's own; what is there
// already is nil also after any of these.
func (j *Journal) WaitHead(ctx context.Context, inputSeq uint64) error {
	for {
		moved := j.behind(inputSeq)
		if moved == nil {
			return nil
		}
		if err := j.usable(); err != nil {
			return err
		}
		select {
		case <-moved:
		case <-j.latch.dead:
		case <-j.stop:
		case <-ctx.Done():
			return fmt.Errorf("journal: wait inputSeq=%d: %w", inputSeq, ctx.Err())
		}
	}
}
