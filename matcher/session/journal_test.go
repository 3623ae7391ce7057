package session

import (
	"context"
	"fmt"
	"testing"

	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/ring"
	"posttrade/ring/must"
)

// committed is the recorder's side of the desk, followed by the server's Wake, as the installation
// connects them.
type committed struct{ r *rig }

func (c committed) Observe(ev *matcher.Event)  { c.r.desk.Observe(ev) }
func (c committed) ClientID(ref uint64) []byte { return c.r.desk.ClientID(ref) }
func (c committed) Durable(seq uint64) {
	c.r.durable.Store(seq)
	c.r.desk.Durable(seq)
	c.r.server.Wake()
}
func (c committed) Fail(error) {
	c.r.desk.Fail()
	c.r.server.Wake()
}

// journaled replaces the rig's recorder by the real one over a journal in dir.
func journaled(dir, mode string) rigOptions {
	return func(r *rig) {
		j := must.Get(journal.Open(dir,
			journal.Options{Durability: mode, Fatal: func(err error) { r.t.Error(err) }}))(r.t)
		must.OK(r.t, j.Create(testGenesis().Marshal()))
		r.recorder = func() {
			recorder := journal.NewRecorder(j, r.out, committed{r},
				journal.RecorderOptions{Idle: ring.Adaptive, IdleSet: true, Flush: r.views.Flush},
				r.views, observed{r}, r.server)
			r.stopRecorder = recorder.Stop
			go func() {
				defer close(r.done)
				if err := recorder.Run(); err != nil {
					r.t.Error(err)
				}
				if err := j.Close(); err != nil {
					r.t.Error(err)
				}
			}()
		}
		r.o.Durable = j.Durable
	}
}

// observed keeps the gate's image up to date.
type observed struct{ r *rig }

func (o observed) Observe(ev *matcher.Event, _ []byte) { o.r.gate.Observe(ev) }

// With a real journal every Decided is on disk when a client reads it: after a restart the history
// holds each of them, with its client id.
func TestDecidedIsInTheJournal(t *testing.T) {
	for _, mode := range []string{journal.DurabilityFsync, journal.DurabilityOS} {
		t.Run(mode, func(t *testing.T) {
			dir := t.TempDir()
			const n = 300
			decided := map[uint64]string{}
			t.Run("trade", func(t *testing.T) {
				r := newRig(t, journaled(dir, mode))
				c := r.dial("", client.Options{})
				l := volley{Count: n, Window: 32, Batch: 4,
					Write: func(c *client.Client, i int) error {
						o := client.NewOrder{Account: 1 + uint32(i%2), Security: aaa, Side: matcher.Side(i % 2),
							Qty: 1, LimitPx: 100_000_000}
						return c.Order(uint64(i), &o, fmt.Sprintf("id-%d", i))
					},
					Answered: func(rec *wire.Record) error {
						if rec.Kind != wire.Answer {
							return nil
						}
						if rec.Code != wire.Decided || rec.InputSeq == 0 || rec.InputSeq > r.o.Durable() {
							return fmt.Errorf("durable %d, answer %+v", r.o.Durable(), *rec)
						}
						decided[rec.InputSeq] = fmt.Sprintf("id-%d", rec.Correlation)
						return nil
					}}
				if res, err := l.run(c); err != nil || res.Fills == 0 {
					t.Fatal(err, res)
				}
			})
			j, err := journal.Open(dir, journal.Options{Durability: mode})
			must.OK(t, err)
			found := 0
			err = j.Replay(context.Background(), 1,
				func(cmds []matcher.Command, ids journal.ClientIDs) error {
					for i := range cmds {
						seq := cmds[i].InputSeq
						if id := string(ids.Of(seq)); id != decided[seq] {
							return fmt.Errorf("sequence %d has client id %q, want %q", seq, id, decided[seq])
						}
						found++
					}
					return nil
				})
			if err != nil || found != n || len(decided) != n {
				t.Errorf("found %d of %d: %v", found, len(decided), err)
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
