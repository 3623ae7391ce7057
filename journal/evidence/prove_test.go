package evidence

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"posttrade/journal"
	"posttrade/journal/asof"
	"posttrade/journal/evidence/verify"
	"posttrade/matcher"
	"posttrade/ring/must"
)

// proofOf is the text of a proof against the newest head.
func (v *venue) proofOf(w Wanted) []byte {
	v.t.Helper()
	p := v.prover()
	at := must.Get(p.Find(context.Background(), w))(v.t)
	note := must.Get(ReadHead(v.logDir()))(v.t)
	proof := must.Get(p.Prove(context.Background(), at, note))(v.t)
	return proof.Append(nil)
}

func (v *venue) keys(l *Log) verify.Keys {
	v.t.Helper()
	return must.Get(verify.ParseKeys([]string{l.VKey()}, nil))(v.t)
}

// TestEveryRecordIsProven proves the record of every command, trade, order and contract of a random
// history, in full leaves and in the open one.
func TestEveryRecordIsProven(t *testing.T) {
	v := newVenue(t, 1)
	v.trade(700)
	l := v.log()
	v.keep(l)
	keys := v.keys(l)
	check := func(w Wanted) *verify.Proven {
		t.Helper()
		p, err := verify.ParseProof(v.proofOf(w))
		must.OK(t, err)
		proven, err := keys.Check(p)
		if err != nil {
			t.Fatalf("%+v: %v", w, err)
		}
		return proven
	}
	head, trades := v.j.Head()
	for seq := uint64(1); seq <= head; seq += 7 {
		if got := check(Wanted{InputSeq: seq}); got.InputSeq != seq {
			t.Fatalf("sequence %d: %+v", seq, got)
		}
	}
	for trade := uint64(1); trade <= trades; trade += 11 {
		check(Wanted{TradeSeq: trade})
	}
	for order := uint64(1); order <= uint64(v.orders); order += 31 {
		check(Wanted{Order: order})
	}
	contracts := 0
	must.OK(t, v.j.Replay(t.Context(), 1, func(cmds []matcher.Command, _ journal.ClientIDs) error {
		for i := range cmds {
			if cmds[i].Type == matcher.SwapBook && cmds[i].TemplateID == 1 && contracts < 3 {
				contracts++
				check(Wanted{Contract: matcher.ContractID(false, cmds[i].InputSeq)})
			}
		}
		return nil
	}))
	if trades == 0 || v.orders == 0 || contracts == 0 {
		t.Fatalf("%d trades, %d orders, %d contracts", trades, v.orders, contracts)
	}
}

// TestPlacesOfActs: an operator's act is marked as one, whatever else has no account is not.
func TestPlacesOfActs(t *testing.T) {
	for kind := range matcher.OperatorNote + 1 {
		at := placeOf(&matcher.Command{TemplateID: matcher.TemplateCommand, Type: kind})
		if at.Act != (kind == matcher.OperatorNote) || at.Act && at.Owned {
			t.Errorf("command type %d: %+v", kind, at)
		}
	}
}

// TestEveryFlippedBitOfAProofIsFound flips every bit, and replaces every byte by some others.
func TestEveryFlippedBitOfAProofIsFound(t *testing.T) {
	bits := 8
	if testing.Short() { // one bit of each byte, of each place in turn
		bits = 1
	}
	v := newVenue(t, 2)
	v.trade(600)
	l := v.log()
	v.keep(l)
	keys := v.keys(l)
	for _, w := range []Wanted{{TradeSeq: 1}, {InputSeq: 600}, {Order: 3}} {
		text := v.proofOf(w)
		for i := range text[:len(text)-1] {
			for bit := range bits {
				bad := append([]byte(nil), text...)
				bad[i] ^= 1 << ((bit + i) % 8)
				p, err := verify.ParseProof(bad)
				if err == nil {
					_, err = keys.Check(p)
				}
				if err == nil {
					t.Fatalf("%+v: bit %d of byte %d flipped, and proven: %s", w, (bit+i)%8, i, bad)
				}
			}
		}
	}
}

// TestAProofWithoutItsCheckIsJudgedByItsHashes: an adversary writes its member check anew,
// or leaves it out.
func TestAProofWithoutItsCheckIsJudgedByItsHashes(t *testing.T) {
	v := newVenue(t, 14)
	v.trade(600)
	l := v.log()
	v.keep(l)
	keys := v.keys(l)
	for _, w := range []Wanted{{TradeSeq: 1}, {InputSeq: 600}} {
		proof := func() *verify.Proof {
			t.Helper()
			text := v.proofOf(w)
			text, _, _ = bytes.Cut(text, []byte(`,"check"`))
			return must.Get(verify.ParseProof(append(text, '}')))(t)
		}
		must.Get(keys.Check(proof()))(t)
		for name, change := range map[string]func(p *verify.Proof){
			"record": func(p *verify.Proof) { p.Record[1+44]++; p.Decoded, _ = verify.Decoded(p.Record) },
			"decoded": func(p *verify.Proof) {
				p.Decoded = bytes.Replace(p.Decoded, []byte(`:`), []byte(`:1`), 1)
			},
			"salt":        func(p *verify.Proof) { p.Salt[3]++ },
			"record path": func(p *verify.Proof) { p.RecordPath[0][0]++ },
			"shorter":     func(p *verify.Proof) { p.RecordPath = p.RecordPath[1:] },
			"leaf": func(p *verify.Proof) {
				if p.Leaf == nil {
					p.Leaf = make([]byte, verify.LeafBytes)
				}
				p.Leaf[20]++
			},
			"path":       func(p *verify.Proof) { p.Path = append(p.Path, verify.Hash{}) },
			"leaf index": func(p *verify.Proof) { p.LeafIndex++ },
			"tree size":  func(p *verify.Proof) { p.TreeSize++ },
			"origin":     func(p *verify.Proof) { p.Origin += "x" },
			"id":         func(p *verify.Proof) { p.ID = "ord-999" },
		} {
			p := proof()
			change(p)
			_, err := keys.Check(p)
			wantBlame(t, name, err, verify.BlameProof)
		}
	}
}

// TestProofsFromCheckpoints: a proof is the same from a checkpoint of the history, which it is made
// from when no snapshot is near, as from the first command on.
func TestProofsFromCheckpoints(t *testing.T) {
	v := newVenue(t, 15)
	v.trade(1500)
	v.keep(v.log())
	note := must.Get(ReadHead(v.logDir()))(t)
	past := must.Get(asof.New(v.j, asof.Options{Dir: t.TempDir(), Interval: 300}))(t)
	defer func() { must.OK(t, past.Close()) }()
	must.OK(t, past.Checkpoint(t.Context()))
	if n, _ := past.Checkpoints(); n < 4 {
		t.Fatalf("%d checkpoints", n)
	}
	near := must.Get(NewProver(past, v.logDir()))(t)
	for _, w := range []Wanted{{InputSeq: 1}, {InputSeq: 300}, {InputSeq: 301}, {InputSeq: 1400},
		{TradeSeq: 3}, {Order: 1}, {Order: uint64(v.orders)}} {
		at := must.Get(near.Find(t.Context(), w))(t)
		proof := must.Get(near.Prove(t.Context(), at, note))(t)
		if got, want := proof.Append(nil), v.proofOf(w); !bytes.Equal(got, want) {
			t.Errorf("%+v:\n%s\n%s", w, got, want)
		}
	}
	if _, err := near.Find(t.Context(), Wanted{Order: uint64(v.orders) + 1}); !errors.Is(err,
		ErrUnknown) {
		t.Errorf("an order that was never made: %v", err)
	}
}
