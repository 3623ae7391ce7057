package quorum

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"

	"posttrade/matcher"
)

// simGenesis is the universe of the simulation.
func simGenesis() *matcher.Genesis {
	g := &matcher.Genesis{
		Format: matcher.GenesisFormat, TickPx: 1000,
		Limits: matcher.Limits{
			MaxOrderQty: 1 << 20, MaxOrderNotional: 1 << 60, MaxPositionQty: 1 << 40,
			MaxConcentrationNotional: 1 << 60,
			CreditLimit:              1 << 60, PriceMaxAgeMillis: 1 << 40, IdempotencyCapacity: 1 << 12,
			MaxAccounts:   16,
			MaxSecurities: 16, MaxContracts: 16, MaxOpenOrders: 1 << 12, RetainedOrders: 1 << 10,
		},
	}
	for id := range uint32(8) {
		g.Accounts = append(g.Accounts, matcher.GenesisAccount{ID: id + 1, Enabled: true})
	}
	for _, ticker := range []string{"A", "B", "C"} {
		g.Securities = append(g.Securities, matcher.GenesisSecurity{Ticker: ticker, Enabled: true})
	}
	return g
}

// simDisk is a member's journal as it lies on its disk: it outlives the process.
// What is not stable yet survives the process, but not a power cut.
type simDisk struct {
	mu       sync.Mutex
	genesis  []byte
	commands []matcher.Command // InputSeq is their sequence
	ids      []string
	stable   uint64
	incoming []byte
}

// cutPower drops what was not stable, down to a place that keep chooses.
func (d *simDisk) cutPower(keep func(unstable int) int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := int(d.stable) + keep(len(d.commands)-int(d.stable))
	d.commands, d.ids = d.commands[:n:n], d.ids[:n:n]
}

// Receive implements Storage.
func (d *simDisk) Receive(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.incoming = b
	return nil
}

// Install implements Storage.
func (d *simDisk) Install() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.incoming
	if b == nil {
		return nil
	}
	take := func(n int) (part []byte) {
		part, b = b[:n], b[n:]
		return part
	}
	number := func() int { return int(binary.LittleEndian.Uint32(take(4))) }
	d.incoming, d.commands, d.ids = nil, nil, nil
	d.genesis = bytes.Clone(take(number()))
	for range number() {
		var c matcher.Command
		copy(c.Bytes()[:], take(matcher.CommandBytes))
		d.commands = append(d.commands, c)
		d.ids = append(d.ids, string(take(number())))
	}
	d.stable = uint64(len(d.commands))
	return nil
}

// image is the whole journal.
func (d *simDisk) image() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(d.genesis)))
	b = append(b, d.genesis...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(d.commands)))
	for i := range d.commands {
		b = append(b, d.commands[i].Bytes()[:]...)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(d.ids[i])))
		b = append(b, d.ids[i]...)
	}
	return b
}

// simDecision is what the engine decided on a command.
type simDecision struct {
	kind      matcher.EventKind
	reason    matcher.RiskReason // of the first decision, when this one repeats it
	duplicate bool
	orderRef  uint32
	events    int
}

// simEngine is a real engine and what it has decided.
type simEngine struct {
	engine    *matcher.Engine
	outlet    *matcher.Outlet
	decisions []simDecision // by sequence, from 1 at 0
	events    int           // of the command being decided
	first     matcher.Event
	lastRef   uint32
}

func newSimEngine(genesis []byte) (*simEngine, error) {
	var g matcher.Genesis
	if err := json.Unmarshal(genesis, &g); err != nil {
		return nil, err
	}
	engine, err := matcher.New(&g)
	if err != nil {
		return nil, err
	}
	e := &simEngine{engine: engine}
	e.outlet = matcher.NewOutlet(64, func(events []matcher.Event) {
		for i := range events {
			if events[i].Flags&matcher.EventFirst != 0 {
				e.first = events[i]
			}
		}
		e.events += len(events)
	})
	return e, nil
}

// decided records the decision on the command just applied.
func (e *simEngine) decided() simDecision {
	e.outlet.Flush()
	d := simDecision{kind: e.first.Kind, reason: e.first.Reason, orderRef: e.first.OrderRef,
		events: e.events}
	if d.reason == matcher.Duplicate {
		_, _, d.reason = e.first.Duplicated()
		d.duplicate = true
	}
	e.events = 0
	e.lastRef = max(e.lastRef, d.orderRef)
	e.decisions = append(e.decisions, d)
	return d
}

// replay decides commands that have their sequence.
func (e *simEngine) replay(commands []matcher.Command) error {
	for i := range commands {
		if err := e.engine.Replay(&commands[i], e.outlet); err != nil {
			return err
		}
		e.decided()
	}
	return nil
}

// simOutcome is the answer to a submitter.
type simOutcome struct {
	decision simDecision
	refused  bool
}

// simHost is the engine and the journal of one life of a member's process.
type simHost struct {
	disk *simDisk

	mu      sync.Mutex
	dead    bool
	engine  *simEngine
	next    uint64 // correlation ids
	waiting map[uint64]chan simOutcome
	ids     map[uint64]string
	fail    func(format string, args ...any)
}

var errSimDead = errors.New("the simulated process is dead")

// die ends the life: what its goroutines still do has no effect.
func (h *simHost) die() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dead = true
}

// expect makes a place for the outcome of one command.
func (h *simHost) expect(id string) (ref uint64, outcome <-chan simOutcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	c := make(chan simOutcome, 1)
	h.waiting[h.next], h.ids[h.next] = c, id
	return h.next, c
}

// told gives a submitter its outcome, once.
func (h *simHost) told(ref uint64, o simOutcome) {
	c, ok := h.waiting[ref]
	if !ok {
		h.fail("submission %d has two outcomes, the second is %+v", ref, o)
		return
	}
	delete(h.waiting, ref)
	delete(h.ids, ref)
	c <- o
}

// Head implements Host.
func (h *simHost) Head() uint64 {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	return uint64(len(h.disk.commands))
}

// Apply implements Host.
func (h *simHost) Apply(first uint64, commands []matcher.Command, ids IDs) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead {
		return
	}
	texts := make([]string, len(commands))
	for i, id, ok := ids.Next(); ok; i, id, ok = ids.Next() {
		texts[i] = string(id)
	}
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	for i := range commands {
		c := commands[i]
		ref := c.InputSeq
		if seq := uint64(len(h.disk.commands)) + 1; first+uint64(i) != seq {
			h.fail("sequence %d is applied, the journal is at %d", first+uint64(i), seq-1)
			return
		}
		h.engine.engine.Apply(&c, h.engine.outlet)
		d := h.engine.decided()
		c.InputSeq = first + uint64(i)
		h.disk.commands, h.disk.ids = append(h.disk.commands, c), append(h.disk.ids, texts[i])
		if ref != 0 {
			h.told(ref, simOutcome{decision: d})
		}
	}
}

// Decided implements Host.
func (h *simHost) Decided(_ context.Context, from, to uint64,
	use func([]matcher.Command) error) error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	return use(h.disk.commands[from-1 : to])
}

// Refuse implements Host.
func (h *simHost) Refuse(ref uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.dead {
		h.told(ref, simOutcome{refused: true})
	}
}

// ClientID implements Host.
func (h *simHost) ClientID(ref uint64) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return []byte(h.ids[ref])
}

// Size implements Host.
func (h *simHost) Size(uint64) int { return 1 }

// Full implements Host.
func (h *simHost) Full() bool { return false }

// WaitDecided implements Host: Apply decides.
func (h *simHost) WaitDecided(context.Context, uint64) error { return nil }

// WaitStable implements Host.
func (h *simHost) WaitStable(_ context.Context, sequence uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead {
		return errSimDead
	}
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if n := uint64(len(h.disk.commands)); sequence > n {
		h.fail("stable up to %d is asked for, the journal is at %d", sequence, n)
	}
	h.disk.stable = max(h.disk.stable, sequence)
	return nil
}

// Transfer implements Host.
func (h *simHost) Transfer() (Transfer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead {
		return nil, errSimDead
	}
	return simTransfer{bytes.NewReader(h.disk.image())}, nil
}

// TransferSize implements Host.
func (h *simHost) TransferSize() (uint64, error) { return uint64(len(h.disk.image())), nil }

// history is the commands that the journal holds, and their client ids.
func (d *simDisk) history() ([]matcher.Command, []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.commands), slices.Clone(d.ids)
}

// simTransfer is the image of a journal on its way.
type simTransfer struct{ *bytes.Reader }

func (simTransfer) Close() error { return nil }
