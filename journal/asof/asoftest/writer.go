package asoftest

import (
	"testing"

	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/ring/must"
)

// DefaultPerBlock is how many commands share a commit.
const DefaultPerBlock = 7

// Writer decides commands and writes them into a new journal. One goroutine uses it, the test's.
//
// Commands wait for PerBlock of them to share a commit. So a test calls Settle before it reads the
// journal.
type Writer struct {
	// Journal and Engine are closed at the end of the test. Engine stands behind the last command
	// given to Do; the journal may be behind it until Settle.
	Journal *journal.Journal
	Engine  *matcher.Engine
	Firsts  []matcher.Event // the first event of every command

	PerBlock int // commands that share a commit; New sets the default

	t   testing.TB
	out *matcher.Outlet
	// block has the commands that no commit has taken yet.
	block *journal.Block
}

// New makes a journal in dir, which the test's end closes.
func New(t testing.TB, dir string, g *matcher.Genesis) *Writer {
	t.Helper()
	return NewWith(t, dir, g, journal.Options{})
}

// NewWith is New with options of the journal.
func NewWith(t testing.TB, dir string, g *matcher.Genesis, o journal.Options) *Writer {
	t.Helper()
	w := &Writer{t: t, block: new(journal.Block), PerBlock: DefaultPerBlock}
	var err error
	if w.Journal, err = journal.Open(dir, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Journal.Close() })
	must.OK(t, w.Journal.Create(g.Marshal()))
	if w.Engine, err = matcher.New(g); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Engine.Close() })
	w.out = matcher.NewOutlet(1024, func(events []matcher.Event) {
		for i := range events {
			ev := &events[i]
			if ev.Flags&matcher.EventFirst != 0 {
				w.block.Command(ev.Cmd())
				w.Firsts = append(w.Firsts, *ev)
			}
			if ev.Kind == matcher.EventFilled {
				f := ev.Fill()
				w.block.Fill(&f)
			}
		}
	})
	return w
}

// Do decides a command and returns its first event. Client order ids are not written.
func (w *Writer) Do(c matcher.Command) matcher.Event {
	w.t.Helper()
	w.Engine.Apply(&c, w.out)
	w.out.Flush()
	if w.block.Commands() >= w.PerBlock {
		w.commit()
	}
	return w.Firsts[len(w.Firsts)-1]
}

// commit gives the journal a block. The journal keeps the block until its commit has ended.
func (w *Writer) commit() {
	w.t.Helper()
	if w.block.Commands() == 0 {
		return
	}
	must.Get(w.Journal.Append(w.block))(w.t)
	w.block = new(journal.Block)
}

// Settle waits until everything is on stable storage.
func (w *Writer) Settle() {
	w.t.Helper()
	w.commit()
	must.OK(w.t, w.Journal.WaitStable(w.t.Context(), w.Engine.AppliedSeq()))
}
