package journal

import (
	"context"
	"slices"
	"sync"

	"posttrade/matcher"
)

// viewer lets the views of a long replay observe on a goroutine of their own. The views take longer
// than the decisions, so a start on two processors takes little more than the views do.
//
//	shadow --full--> viewer
//	shadow <--free-- viewer
//
// Each portion is in one place: with the shadow, in full, with the viewer or in free. Both channels
// have room for all of them, so the shadow waits only for a free portion, and the viewer only for a
// full one.
type viewer struct {
	views      Views
	full, free chan *portion
	ended      chan struct{} // closed when the goroutine has ended, also by a panic
	join       func()

	filling *portion // the shadow's: its memory is the window of the shadow's engine
	// The viewer's: the blocks that are not behind it, and the id of the command that passes by.
	blocks []blockIDs
	id     []byte
}

// portion is the events of whole commands on their way from the engine to the views: the first n
// slots of its window.
type portion struct {
	window []matcher.Event
	n      int64
	blocks []blockIDs // of the blocks that begin in it
}

// blockIDs are the client ids of one block, in memory of their own, and its last command.
type blockIDs struct {
	last uint64
	ids  ClientIDs
}

// A portion has the events of some thousand commands: handing one to a thread that sleeps takes as
// long as observing a hundred.
const (
	portionEvents = 1 << 13
	portions      = 4
)

// followApart is Follow without a reader, with the views on a goroutine of their own. When it
// returns, engine and views stand behind the same command, also after an error. A panic of the
// views is its panic.
func (sh *Shadow) followApart(ctx context.Context, to uint64) error {
	v := &viewer{
		views: sh.views, ended: make(chan struct{}),
		full: make(chan *portion, portions), free: make(chan *portion, portions),
	}
	for range portions {
		v.free <- &portion{window: make([]matcher.Event, portionEvents)}
	}
	v.filling = <-v.free
	v.join = sync.OnceFunc(alike(v.run))
	sh.viewer = v
	sh.look(v.filling.window)
	defer func() { // Follow may panic
		v.hand(sh.out.Slots, sh.whole())
		sh.viewer, sh.out.Next = nil, 0
		sh.look(sh.window)
		close(v.full)
		v.join()
	}()
	return sh.Follow(ctx, to, nil)
}

// block notes the client ids of the block that the engine decides next.
func (v *viewer) block(cmds []matcher.Command, ids ClientIDs) {
	ids.raw = slices.Clone(ids.raw)
	p := v.filling
	p.blocks = append(p.blocks, blockIDs{cmds[len(cmds)-1].InputSeq, ids})
}

// hand gives the first n events of the window to the views.
func (v *viewer) hand(window []matcher.Event, n int64) {
	v.filling.window, v.filling.n = window, n
	v.full <- v.filling
}

// next returns a window of more than n slots. It waits until the views have given one back.
func (v *viewer) next(n int) []matcher.Event {
	select {
	case v.filling = <-v.free:
	case <-v.ended:
		v.join() // panics: nothing else ends the views before the replay
	}
	p := v.filling
	p.blocks = p.blocks[:0]
	for len(p.window) <= n {
		p.window = make([]matcher.Event, 2*len(p.window))
	}
	return p.window
}

// run observes what is handed over until the replay ends.
func (v *viewer) run() {
	defer close(v.ended)
	for p := range v.full {
		v.observe(p)
		v.free <- p
	}
}

// observe gives one portion to the views. Its first commands may be of a block that began in an
// earlier one.
func (v *viewer) observe(p *portion) {
	v.blocks = append(v.blocks, p.blocks...)
	for i := range p.window[:p.n] {
		ev := &p.window[i]
		if ev.Flags&matcher.EventFirst != 0 {
			for ev.InputSeq > v.blocks[0].last {
				v.blocks = v.blocks[1:]
			}
			v.id = v.blocks[0].ids.Of(ev.InputSeq)
		}
		v.views.Observe(ev, v.id)
	}
}
