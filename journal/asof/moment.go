package asof

import (
	"context"
	"errors"
	"time"

	"posttrade/blotter"
	"posttrade/journal"
	"posttrade/matcher"
)

// Moment is the state after one command. It does not change until Release. One that is not released
// keeps its shadow from all other callers, and Close from returning.
type Moment struct {
	h *History
	// p is a place of which this Moment is one of the readers
	p *warmShadow
}

// InputSeq is the moment's sequence.
func (m *Moment) InputSeq() uint64 { return m.p.at }

// Views are the read views at the moment. Any number of goroutines may read them.
func (m *Moment) Views() *blotter.Views { return m.p.shadow.Views().(Image).Views }

// Engine is the engine at the moment. Readers share it, so the caller calls only what changes
// nothing (not Judge, which History.Command is for), and does not keep it.
func (m *Moment) Engine() *matcher.Engine { return m.p.shadow.Engine().(*matcher.Engine) }

// Release gives the moment back, once. The views and the engine must not be used afterwards:
// another caller may move them.
func (m *Moment) Release() {
	h := m.h
	h.mu.Lock()
	defer h.mu.Unlock()
	m.p.readers--
	m.p.since = time.Now()
	h.wake()
}

// errEnough ends a walk through the journal when what was looked for is there. It does not leave
// the package.
var errEnough = errors.New("enough")

// Fills returns up to limit of the fills executed by the moment, with a trade sequence above after
// and for which want is true, in their order. It reads the journal's fills, as many as it takes, at
// a low priority.
//
// Cost: linear in the fills behind after, not in what is returned; a narrow want may read to the
// end.
func (m *Moment) Fills(ctx context.Context, after uint64, limit int,
	want func(*matcher.Fill) bool) (fills []matcher.Fill, err error) {
	if after == ^uint64(0) {
		return nil, nil
	}
	at := m.InputSeq()
	err = journal.Politely(journal.Background, func() error {
		return m.h.j.Fills(after+1, func(block []matcher.Fill) error {
			for i := range block {
				f := &block[i]
				if f.InputSeq > at || len(fills) == limit {
					return errEnough
				}
				if want(f) {
					fills = append(fills, *f)
				}
			}
			return ctx.Err()
		})
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return fills, err
}
