package matcher

import (
	"encoding/hex"
	"hash/fnv"
	"strings"
	"testing"

	"posttrade/ring/must"
)

// The vectors are those of the reference implementation: key and message are 00, 01, 02...
func TestKeysAreSipHash24(t *testing.T) {
	want := map[int]string{ // by length of the message
		8: "6224939a79f5f593", 9: "b0e4a90bdf82009e", 10: "f3b9dd94c5bb5d7a", 11: "a7ad6b22462fb3f4",
		12: "fbe50e86bc8f1e75", 13: "903d84c02756ea14", 14: "eef27a8e90ca23f7", 15: "e545be4961ca29a1",
	}
	k := must.Get(ParseClientKey("000102030405060708090a0b0c0d0e0f"))(t)
	tail := []byte{8, 9, 10, 11, 12, 13, 14}
	for n, text := range want {
		h := sipHash(k.k0, k.k1, 0x0706050403020100, tail[:n-8])
		var b [8]byte
		for i := range b {
			b[i] = byte(h >> (8 * i))
		}
		if got := hex.EncodeToString(b[:]); got != text {
			t.Errorf("%d bytes: %s, want %s", n, got, text)
		}
	}
}

func TestKeyWithoutASecretIsFNV1aOfAccountAndClientID(t *testing.T) {
	var k ClientKey
	for _, tt := range []struct {
		account uint32
		id      string
		text    string
	}{
		{1, "a", "1:a"}, {22214, "order-17", "22214:order-17"}, {4294967295, "~ ", "4294967295:~ "},
		{0, "x", "0:x"},
	} {
		h := fnv.New64a()
		h.Write([]byte(tt.text))
		if got := k.Of(tt.account, []byte(tt.id)); got != h.Sum64() {
			t.Errorf("key of %s is %x, want %x", tt.text, got, h.Sum64())
		}
	}
	if k.Of(1, nil) != 0 {
		t.Error("no client order id must be key 0")
	}
	if k.Of(1, []byte("1:a")) == k.Of(11, []byte("a")) {
		t.Error("two accounts share a key")
	}
}

func TestKeyDependsOnSecretAccountAndEveryByte(t *testing.T) {
	one, _ := ParseClientKey(strings.Repeat("11", 16))
	two, _ := ParseClientKey(strings.Repeat("11", 15) + "12")
	seen := map[uint64]string{}
	id := []byte("0123456789abcdef-0123456789abcdef-0123456789abcdef-0123456789abc")
	note := func(what string, key uint64) {
		if other, ok := seen[key]; ok || key == 0 {
			t.Errorf("%s has the key of %s", what, other)
		}
		seen[key] = what
	}
	for n := 1; n <= len(id); n++ {
		note("id of a length", one.Of(7, id[:n]))
	}
	note("another account", one.Of(8, id))
	note("another secret", two.Of(7, id))
	for i := range id {
		changed := append([]byte(nil), id...)
		changed[i]++
		note("another id", one.Of(7, changed))
	}
	if one.Of(7, nil) != 0 {
		t.Error("no client order id must be key 0")
	}
	if n := testing.AllocsPerRun(100, func() { one.Of(7, id) }); n != 0 {
		t.Errorf("a key takes %v allocations", n)
	}
}

func TestNewClientKeysAreDifferentAndReadable(t *testing.T) {
	a, b := NewClientKey(), NewClientKey()
	if a == b {
		t.Error("two installations have one key")
	}
	if k, err := ParseClientKey(a); err != nil || !k.secret {
		t.Errorf("%q: %v", a, err)
	}
	for _, bad := range []string{"x", "00", strings.Repeat("0", 31), strings.Repeat("g", 32),
		strings.Repeat("0", 34)} {
		if _, err := ParseClientKey(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

func BenchmarkClientKey(b *testing.B) {
	secret, _ := ParseClientKey(NewClientKey())
	for _, k := range []struct {
		name string
		key  ClientKey
	}{{"sip", secret}, {"fnv", ClientKey{}}} {
		b.Run("hash="+k.name, func(b *testing.B) {
			id := []byte("order-20261123-00017")
			for b.Loop() {
				k.key.Of(22214, id)
			}
		})
	}
}
