package quorum

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring"
	"posttrade/ring/must"
)

// patience bounds a test that hangs; no test measures it.
const patience = time.Minute

// memory is a member's engine and journal in one: the commands that were applied, in
// memory that outlives the node as a disk does.
type memory struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced when something is applied
	commands []matcher.Command
	ids      map[uint64]string
	refused  []uint64
	incoming []byte
	full     atomic.Bool

	clientIDs map[uint64]string // of submissions, by correlation id
	sizes     map[uint64]int
	gathered  uint64 // the last submission that the proposer has asked for

	sends   int             // transfers that were begun
	sending <-chan struct{} // what a transfer waits for before it begins; nil: nothing

	unsent error // why no transfer can be made
}

func newMemory() *memory {
	return &memory{
		changed: make(chan struct{}), ids: map[uint64]string{},
		clientIDs: map[uint64]string{}, sizes: map[uint64]int{},
	}
}

func (m *memory) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *memory) Head() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return uint64(len(m.commands))
}

func (m *memory) Apply(first uint64, commands []matcher.Command, ids IDs) {
	m.change(func() {
		if first != uint64(len(m.commands))+1 {
			panic("applied out of order")
		}
		for i, id, ok := ids.Next(); ok; i, id, ok = ids.Next() {
			m.ids[first+uint64(i)] = string(id)
		}
		m.commands = append(m.commands, commands...)
	})
}

func (m *memory) Decided(_ context.Context, from, to uint64,
	use func([]matcher.Command) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return use(m.commands[from-1 : to])
}

func (m *memory) Refuse(ref uint64) { m.change(func() { m.refused = append(m.refused, ref) }) }

func (m *memory) ClientID(ref uint64) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return []byte(m.clientIDs[ref])
}

func (m *memory) Size(ref uint64) (n int) {
	m.change(func() { n, m.gathered = m.sizes[ref], ref })
	return n
}

func (m *memory) WaitStable(ctx context.Context, sequence uint64) error { return ctx.Err() }

func (m *memory) Full() bool { return m.full.Load() }

func (m *memory) WaitDecided(ctx context.Context, sequence uint64) error { return ctx.Err() }

// Transfer writes the number of commands, then each with its client id.
func (m *memory) Transfer() (Transfer, error) {
	var gate <-chan struct{}
	m.change(func() { m.sends, gate = m.sends+1, m.sending })
	if gate != nil {
		<-gate
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var b []byte
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.commands)))
	for i := range m.commands {
		b = append(b, m.commands[i].Bytes()[:]...)
		id := m.ids[uint64(i+1)]
		b = append(append(b, byte(len(id))), id...)
	}
	return memoryTransfer{bytes.NewReader(b)}, nil
}

// TransferSize is 64 bytes for each command.
func (m *memory) TransferSize() (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return 64 * uint64(len(m.commands)), m.unsent
}

type memoryTransfer struct{ *bytes.Reader }

func (memoryTransfer) Close() error { return nil }

func (m *memory) Receive(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err == nil {
		m.change(func() { m.incoming = b })
	}
	return err
}

func (m *memory) Install() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.incoming
	if b == nil {
		return nil
	}
	m.incoming, m.commands, m.ids = nil, nil, map[uint64]string{}
	n := binary.LittleEndian.Uint32(b)
	b = b[4:]
	for i := range n {
		var c matcher.Command
		copy(c.Bytes()[:], b)
		m.commands = append(m.commands, c)
		size := int(b[matcher.CommandBytes])
		b = b[matcher.CommandBytes+1:]
		if size > 0 {
			m.ids[uint64(i+1)] = string(b[:size])
		}
		b = b[size:]
	}
	return nil
}

// until waits until a condition on the applied commands holds.
func (m *memory) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	late := time.After(patience)
	for {
		m.mu.Lock()
		changed, done := m.changed, ok()
		m.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("waiting for %s", what)
		}
	}
}

// member is one process of the cluster.
type member struct {
	t         *testing.T
	o         Options
	disk      *memory
	node      *Node
	region    *ring.Region
	proposals *ring.MPSC[matcher.Command]
	next      uint64        // correlation ids
	fatal     func(error)   // nil: an error of the test
	heartbeat time.Duration // 0: a second
}

// cluster is members that reach each other over loopback.
type cluster struct {
	t       *testing.T
	members []*member
}

// freeMembers returns members with ports that are free now.
func freeMembers(t *testing.T, n int) (list []Member) {
	t.Helper()
	var held []net.Listener
	for i := range n {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		held = append(held, l)
		list = append(list, Member{ID: strconv.Itoa(i + 1), Raft: l.Addr().String(), HTTP: "127.0.0.1:1"})
	}
	for _, l := range held {
		l.Close()
	}
	return list
}

func newCluster(t *testing.T, n int) *cluster {
	c := &cluster{t: t}
	t.Cleanup(c.stop)
	list := freeMembers(t, n)
	for _, m := range list {
		c.members = append(c.members, &member{t: t, disk: newMemory(), o: Options{
			Dir: t.TempDir(), Member: m.ID, Members: list,
			Genesis: func() ([]byte, error) { return []byte("genesis of " + m.ID), nil },
		}})
	}
	return c
}

// start opens all members' nodes.
func (c *cluster) start() {
	for _, m := range c.members {
		m.start()
	}
}

func (m *member) start() {
	m.t.Helper()
	must.OK(m.t, m.open())
}

func (m *member) open() error {
	o := m.o
	o.Storage, o.Idle = m.disk, ring.Park
	if o.Heartbeat = m.heartbeat; o.Heartbeat == 0 {
		o.Heartbeat = time.Second // a test machine may be busy
	}
	o.Services = func() map[string]string {
		return map[string]string{"order-matcher": "http of " + o.Member}
	}
	if o.Fatal = m.fatal; o.Fatal == nil {
		o.Fatal = func(err error) { m.t.Errorf("member %s: %v", o.Member, err) }
	}
	if err := m.disk.Install(); err != nil {
		return err
	}
	if m.disk.Head() > 0 {
		o.Has = []byte("has one")
	}
	var err error
	if m.node, err = Open(o); err != nil {
		return err
	}
	region, err := ring.Anonymous(ring.MPSCBytes[matcher.Command](1024))
	if err != nil {
		return err
	}
	m.region = region
	if m.proposals, err = ring.NewMPSC[matcher.Command](region, 1024); err != nil {
		return err
	}
	return m.node.Attach(m.disk, m.proposals)
}

func (m *member) stop() {
	m.t.Helper()
	if m.node == nil {
		return
	}
	if err := m.node.Close(); err != nil {
		m.t.Errorf("member %s: close: %v", m.o.Member, err)
	}
	m.node = nil
	m.region.Close()
}

func (c *cluster) stop() {
	for _, m := range c.members {
		m.stop()
	}
}

// leader waits until one of the members leads.
func (c *cluster) leader() (leader *member) {
	c.t.Helper()
	await(c.t, "a leader", func() bool {
		for _, m := range c.members {
			if m.node != nil && m.node.Leads() {
				leader = m
				return true
			}
		}
		return false
	})
	return leader
}

// await polls until a condition holds.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	late := time.After(patience)
	for !ok() {
		select {
		case <-late:
			t.Fatalf("waiting for %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// submit hands in n orders together and returns the correlation id of the first.
func (m *member) submit(n int, id string) (ref uint64) {
	m.t.Helper()
	ref = m.next + 1
	m.next += uint64(n)
	m.disk.mu.Lock()
	m.disk.sizes[ref] = n
	if id != "" {
		m.disk.clientIDs[ref] = id
	}
	m.disk.mu.Unlock()
	lo, ok := m.proposals.ClaimN(n)
	if !ok {
		m.t.Fatal("the ring is full")
	}
	for i := range n {
		c := matcher.NewCommand(matcher.OrderNew)
		c.InputSeq, c.AccountID, c.Qty = ref+uint64(i), uint32(m.next), int32(i+1)
		*m.proposals.At(lo + int64(i)) = c
	}
	m.proposals.Publish(lo, n)
	return ref
}

// book submits n commands to the current leader until they are agreed: it hands in again what is
// refused.
func (c *cluster) book(n int, id string) {
	c.t.Helper()
	for {
		m := c.leader()
		m.disk.mu.Lock()
		before := len(m.disk.refused)
		m.disk.mu.Unlock()
		ref := m.submit(n, id)
		refused := false
		m.disk.until(c.t, "an outcome", func() bool {
			refused = slices.Contains(m.disk.refused[before:], ref)
			return refused || slices.ContainsFunc(m.disk.commands,
				func(c matcher.Command) bool { return c.InputSeq == ref })
		})
		if !refused {
			return
		}
	}
}

// history is what was applied, without the values that differ between members.
func (m *memory) history() (list []matcher.Command, ids map[uint64]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list = slices.Clone(m.commands)
	for i := range list {
		list[i].InputSeq = 0
	}
	return list, m.ids
}
