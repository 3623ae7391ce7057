package blotter

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"posttrade/matcher"
	"posttrade/ring"
	"posttrade/ring/must"
)

// TestKeysAreRememberedForOneLap fills small rings for many laps, with few and with many chains,
// and asks for keys of all ages after every added key.
func TestKeysAreRememberedForOneLap(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, capacity := range []int{1, 2, 7, 64} {
		var a ring.Arena
		v := &Views{keys: newKeys(&a, capacity)}
		for len(v.keys.heads) > 4 && rng.IntN(2) == 0 {
			v.keys.heads, v.keys.shift = v.keys.heads[:len(v.keys.heads)/2], v.keys.shift+1
		}
		v.publish()
		spaces := [2]matcher.IdempotencyKind{matcher.KeyOrder, matcher.KeyContract}
		all := make([]KeyRow, 0, 40*capacity)
		for len(all) < cap(all) {
			row := KeyRow{Key: rng.Uint64() | 1, InputSeq: uint64(len(all) + 1), Kind: spaces[rng.IntN(2)]}
			if _, ok := v.Key(row.Kind, 1, row.Key); ok {
				t.Fatalf("capacity %d: key %016x is there before it was remembered", capacity, row.Key)
			}
			v.keys.remember(&row)
			all = append(all, row)
			for i := max(0, len(all)-3*capacity); i < len(all); i++ {
				got, ok := v.Key(all[i].Kind, 1, all[i].Key)
				if want := i >= len(all)-capacity; ok != want || ok && got.InputSeq != all[i].InputSeq {
					t.Fatalf("capacity %d: key %d of %d is there: %v, inputSeq %d", capacity, i+1, len(all), ok,
						got.InputSeq)
				}
			}
			must.OK(t, v.keys.check())
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestMarksOfForgottenKeysAreDropped: a chain of which all keys are forgotten begins anew with the
// next key. So marks distinguish keys however long the process runs.
func TestMarksOfForgottenKeysAreDropped(t *testing.T) {
	const capacity = 1024
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	var a ring.Arena
	defer a.Close()
	k := newKeys(&a, capacity)
	for n := range uint64(50 * capacity) {
		k.remember(&KeyRow{Key: rng.Uint64() | 1, InputSeq: n + 1})
	}
	marked, asked := 0, 4*capacity
	for range asked {
		key := rng.Uint64() | 1
		if k.heads[k.headOf(0, key)]&k.markOf(0, key) != 0 {
			marked++
		}
	}
	if marked > asked*3/20 {
		t.Errorf("%d of %d new keys are marked", marked, asked)
	}
}

// chain is the length of the longest chain.
func (k *keys) chain() (longest int) {
	for _, head := range k.heads {
		length := 0
		for at := uint32(head); at != 0; at = k.slots[at].row.next {
			length++
		}
		longest = max(longest, length)
	}
	return longest
}

// TestNobodyChoosesTheChainsOfKeys: keys that a fixed multiplier sends to one chain are spread by
// the salt of this process, and of the next.
func TestNobodyChoosesTheChainsOfKeys(t *testing.T) {
	const capacity, multiplier = 8192, uint64(0x9e3779b97f4a7c15)
	inverse := multiplier
	for range 5 { // each step doubles the bits that are right
		inverse *= 2 - multiplier*inverse
	}
	longest := capacity
	for range 3 { // one salt in 100,000 suits the chosen keys
		var a ring.Arena
		k := newKeys(&a, capacity)
		for n := range uint64(capacity / 2) {
			k.remember(&KeyRow{Key: (n + 1) * inverse, InputSeq: n + 1})
		}
		if err := k.check(); err != nil {
			t.Error(err)
		}
		longest = min(longest, k.chain())
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
	if longest > 512 {
		t.Errorf("%d chosen keys hang in one chain", longest)
	}
}

// Two accounts that use the same key have each their own first decision.
func TestOneKeyOfTwoAccountsIsTwoRows(t *testing.T) {
	var a ring.Arena
	defer a.Close()
	v := &Views{keys: newKeys(&a, 8)}
	v.publish()
	for n := range uint64(3) {
		v.keys.remember(&KeyRow{Key: 77, InputSeq: n + 1, ByAccount: true, AccountID: uint32(n) * 5})
	}
	v.keys.remember(&KeyRow{Key: 78, InputSeq: 4}) // of a record without an account
	for n := range uint64(3) {
		row, ok := v.Key(matcher.KeyOrder, uint32(n)*5, 77)
		if !ok || row.InputSeq != n+1 {
			t.Errorf("account %d finds %v %+v", n*5, ok, row)
		}
		if row, ok = v.Key(matcher.KeyOrder, uint32(n)*5, 78); !ok || row.InputSeq != 4 {
			t.Errorf("account %d finds %v %+v of all accounts", n*5, ok, row)
		}
	}
	if row, ok := v.Key(matcher.KeyOrder, 6, 77); ok {
		t.Errorf("an account without the key finds %+v", row)
	}
	if err := v.keys.check(); err != nil {
		t.Error(err)
	}
}

// Repeats compares the terms of a repeated key with its first terms, as they were sent.
func TestRepeatsComparesTermsAsSent(t *testing.T) {
	sent := func(version uint16, security uint32) matcher.Command {
		c := matcher.NewCommand(matcher.OrderNew)
		c.Version, c.AccountID, c.SecurityID, c.Qty, c.LimitPx = version, 7, security, 10, 5_000_000
		return c
	}
	row := func(c matcher.Command, id string, reason matcher.RiskReason) *KeyRow {
		return &KeyRow{TermsHash: TermsHash(&c, []byte(id)), ByAccount: c.Version > 1, Reason: reason}
	}
	const known = 3
	right, wrong := matcher.UnknownTicker([]byte("ACME")), matcher.UnknownTicker([]byte("ACNE"))
	for _, tt := range []struct {
		name   string
		first  *KeyRow
		again  matcher.Command
		id     string
		ticker string
		want   bool
	}{
		{"the same", row(sent(2, known), "a", matcher.Accepted), sent(2, known), "a", "ACME", true},
		{"another id of the same key", row(sent(2, known), "a", matcher.Accepted), sent(2, known), "b",
			"ACME", false},
		{"unknown both times", row(sent(2, right), "a", matcher.UnknownSecurity), sent(2, right), "a",
			"ACME", true},
		{"unknown then, known now", row(sent(2, right), "a", matcher.UnknownSecurity), sent(2, known),
			"a", "ACME", true},
		{"unknown then, another now", row(sent(2, wrong), "a", matcher.UnknownSecurity), sent(2, known),
			"a", "ACME", false},
		{"two unknown ones", row(sent(2, wrong), "a", matcher.UnknownSecurity), sent(2, right), "a",
			"ACME", false},
		{"another id, unknown then", row(sent(2, right), "a", matcher.UnknownSecurity), sent(2, known),
			"b", "ACME", false},
		{"a booking", row(sent(2, known), "a", matcher.Accepted), sent(2, known), "a", "", true},
		{"of version 1", row(sent(1, known), "", matcher.Accepted), sent(2, known), "a", "ACME", true},
		{"of version 1, unknown both times", row(sent(1, 0), "", matcher.UnknownSecurity), sent(2, right),
			"a", "ACME", true},
		{"of version 1, known now", row(sent(1, 0), "", matcher.UnknownSecurity), sent(2, known), "a",
			"ACME", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.first.Repeats(&tt.again, []byte(tt.id), []byte(tt.ticker)); got != tt.want {
				t.Errorf("repeats %v, want %v", got, tt.want)
			}
		})
	}
}

// Every byte of a client's id is part of the terms, wherever it lies in a word.
func TestTermsHashTellsIDsApart(t *testing.T) {
	c := matcher.NewCommand(matcher.OrderNew)
	seen := map[uint64]string{}
	add := func(id string) {
		h := TermsHash(&c, []byte(id))
		if other, ok := seen[h]; ok {
			t.Errorf("%q and %q are the same", id, other)
		}
		seen[h] = id
	}
	for n := range MaxClientID + 1 {
		id := bytes.Repeat([]byte{'a'}, n)
		add(string(id))
		for i := range id {
			id[i] = 'b'
			add(string(id))
			id[i] = 'a'
		}
	}
	c.Version = matcher.OldestVersion
	if TermsHash(&c, []byte("a")) != TermsHash(&c, nil) {
		t.Error("records of version 1 have other terms than they had")
	}
}
