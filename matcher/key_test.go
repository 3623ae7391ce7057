package matcher

import (
	"hash/fnv"
	"testing"
)

func TestIdempotencyKeyIsFNV1aOfAccountAndClientID(t *testing.T) {
	for _, tt := range []struct {
		account uint32
		id      string
		text    string
	}{
		{1, "a", "1:a"}, {22214, "order-17", "22214:order-17"}, {4294967295, "~ ", "4294967295:~ "}, {0, "x", "0:x"},
	} {
		h := fnv.New64a()
		h.Write([]byte(tt.text))
		if got := IdempotencyKey(tt.account, tt.id); got != h.Sum64() {
			t.Errorf("key of %s is %x, want %x", tt.text, got, h.Sum64())
		}
		if IdempotencyKey(tt.account, []byte(tt.id)) != h.Sum64() {
			t.Errorf("key of %s differs between string and bytes", tt.text)
		}
	}
	if IdempotencyKey(1, "") != 0 {
		t.Error("no client order id must be key 0")
	}
	if IdempotencyKey(1, "1:a") == IdempotencyKey(11, "a") {
		t.Error("two accounts share a key")
	}
}
