package evidence

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"posttrade/journal"
	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
	"posttrade/ring/must"
)

// naiveTree is the tree of RFC 6962, as its text has it.
func naiveTree(leaves [][32]byte) [32]byte {
	switch n := len(leaves); n {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return leaves[0]
	default:
		k := 1
		for 2*k < n {
			k *= 2
		}
		left, right := naiveTree(leaves[:k]), naiveTree(leaves[k:])
		return sha256.Sum256(append(append([]byte{1}, left[:]...), right[:]...))
	}
}

// naiveRecord is the hash of a record: salt and layout spelled out.
func naiveRecord(key []byte, inputSeq uint64, number uint32, record []byte) [32]byte {
	b := append([]byte{2}, key...)
	b = binary.BigEndian.AppendUint64(b, inputSeq)
	both := sha256.Sum256(binary.BigEndian.AppendUint32(b, number/2))
	salt := both[:16]
	if number%2 == 1 {
		salt = both[16:]
	}
	return sha256.Sum256(append(append([]byte{0}, salt...), record...))
}

// naiveLog computes the leaves of a venue's log, and the root of the open leaf, from its commands
// and an engine of its own.
func (v *venue) naiveLog() (leaves [][32]byte, open [32]byte) {
	v.t.Helper()
	key, err := hex.DecodeString(v.genesis.EvidenceKey)
	must.OK(v.t, err)
	if len(key) == 0 { // a journal of a build that had no such key
		seed := sha256.Sum256(v.genesis.Marshal())
		key = seed[:]
	}
	e, err := matcher.New(v.genesis)
	must.OK(v.t, err)
	defer e.Close()
	leaf := func(first, count uint64, records [][32]byte) [32]byte {
		root := naiveTree(records)
		b := binary.BigEndian.AppendUint64([]byte{0}, first)
		return sha256.Sum256(append(binary.BigEndian.AppendUint64(b, count), root[:]...))
	}
	leaves = [][32]byte{leaf(0, 1, [][32]byte{naiveRecord(key, 0, 0, v.genesis.Marshal())})}
	var records [][32]byte
	must.OK(v.t, v.j.Replay(v.t.Context(), 1, func(
		cmds []matcher.Command, ids journal.ClientIDs,
	) error {
		for i := range cmds {
			c := &cmds[i]
			var events []matcher.Event
			out := matcher.NewOutlet(8, func(ev []matcher.Event) { events = append(events, ev...) })
			if _, err := e.ReplayBatch(cmds[i:i+1], out); err != nil {
				return err
			}
			out.Flush()
			ref, status, reason := uint32(0), byte(events[0].Status), byte(events[0].Reason)
			isOrder := c.TemplateID == 1 && (c.Type == matcher.OrderNew || c.Type == matcher.OrderCancel)
			if isOrder {
				ref = events[0].OrderRef
			}
			if o, held := e.Order(ref); held && events[0].Kind != matcher.EventRejected {
				status, reason = byte(o.Status), byte(o.Reason)
			}
			if c.TemplateID == 1 && c.Type == matcher.TradeNew {
				status = byte(matcher.StatusFilled)
			}
			if events[0].Kind == matcher.EventRejected {
				status, reason = byte(matcher.StatusRejected), byte(events[0].Reason)
			}
			id := ids.Of(c.InputSeq)
			record := append([]byte{1}, c.Bytes()[:]...)
			record = binary.BigEndian.AppendUint32(record, ref)
			record = append(record, status, reason)
			record = append(binary.BigEndian.AppendUint16(record, uint16(len(id))), id...)
			records = append(records, naiveRecord(key, c.InputSeq, 0, record))
			number := uint32(1)
			for k := range events {
				if events[k].Kind == matcher.EventFilled {
					fill := events[k].Fill()
					records = append(records, naiveRecord(key, c.InputSeq, number,
						append([]byte{2}, fill.Bytes()[:]...)))
					number++
				}
			}
			if c.InputSeq%256 == 0 {
				leaves = append(leaves, leaf(c.InputSeq-255, 256, records))
				records = nil
			}
		}
		return nil
	}))
	return leaves, naiveTree(records)
}

// TestTheLogIsWhatTheContractSays compares every published head with a log that is computed in the
// plainest way.
func TestTheLogIsWhatTheContractSays(t *testing.T) {
	for seed := uint64(60); seed < 64; seed++ {
		g := testGenesis()
		if seed == 63 {
			g.EvidenceKey = ""
		}
		v := newVenueOf(t, seed, g)
		for range 3 {
			v.trade(700)
			l := v.log()
			v.keep(l)
			leaves, open := v.naiveLog()
			head := l.published()
			if head.Size != uint64(len(leaves)) || head.Root != naiveTree(leaves) ||
				head.HeadRoot != open {
				t.Fatalf("seed %d: %+v, want %d leaves", seed, head, len(leaves))
			}
		}
	}
}

// TestACommandOfManyFills has more records in one command than are hashed together, with client
// order ids of every length around the ends of blocks.
func TestACommandOfManyFills(t *testing.T) {
	v := newVenue(t, 65)
	order := func(account uint32, side matcher.Side, qty int32, id int) {
		c := matcher.NewCommand(matcher.OrderNew)
		c.EventTimeMillis = 1_700_000_000_000 + int64(v.engine.AppliedSeq())
		c.AccountID, c.SecurityID, c.Side, c.Qty, c.LimitPx = account, 1, side, qty, 100_000_000
		v.decide(c, strings.Repeat("x", id))
	}
	const depth = 65
	for i := range depth {
		order(2, matcher.Sell, 1, i)
	}
	order(3, matcher.Buy, depth, 64)
	v.commit()
	v.trade(300)
	l := v.log()
	v.keep(l)
	leaves, open := v.naiveLog()
	if head := l.published(); head.Size != uint64(len(leaves)) || head.Root != naiveTree(leaves) ||
		head.HeadRoot != open {
		t.Fatalf("%+v, want %d leaves", head, len(leaves))
	}
	keys := v.keys(l)
	for _, w := range []Wanted{{InputSeq: depth + 1}, {TradeSeq: 1}, {TradeSeq: depth},
		{TradeSeq: 2 * depth}, {Order: depth}} {
		p, err := verify.ParseProof(v.proofOf(w))
		must.OK(t, err)
		if proven, err := keys.Check(p); err != nil || proven.InputSeq > depth+1 {
			t.Errorf("%+v: %+v: %v", w, proven, err)
		}
	}
}
