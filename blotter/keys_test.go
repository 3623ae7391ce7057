package blotter

import (
	"math/rand/v2"
	"testing"

	"posttrade/matcher"
	"posttrade/ring"
)

// TestKeysAreRememberedForOneLap goes round small rings many times, with few and
// with many chains, and asks for keys of all ages after every one that is added.
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
		spaces := [2]matcher.IdempotencyKind{matcher.KeyOrder, matcher.KeyContract}
		all := make([]KeyRow, 0, 40*capacity)
		for len(all) < cap(all) {
			row := KeyRow{Key: rng.Uint64() | 1, InputSeq: uint64(len(all) + 1), Kind: spaces[rng.IntN(2)]}
			if _, ok := v.Key(row.Kind, row.Key); ok {
				t.Fatalf("capacity %d: key %016x is there before it was remembered", capacity, row.Key)
			}
			v.keys.remember(&row)
			all = append(all, row)
			for i := max(0, len(all)-3*capacity); i < len(all); i++ {
				got, ok := v.Key(all[i].Kind, all[i].Key)
				if want := i >= len(all)-capacity; ok != want || ok && got.InputSeq != all[i].InputSeq {
					t.Fatalf("capacity %d: key %d of %d is there: %v, inputSeq %d", capacity, i+1, len(all), ok, got.InputSeq)
				}
			}
			if err := v.keys.check(); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestMarksOfForgottenKeysAreDropped: a chain whose keys are all forgotten begins
// anew with the next one, so that marks tell keys apart however long the process runs.
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
