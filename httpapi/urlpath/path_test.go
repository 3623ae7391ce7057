package urlpath

import "testing"

func TestPlain(t *testing.T) {
	for want, paths := range map[bool][]string{
		true: {"/", "/orders", "/orders/", "/orders/ord-1", "/book/BRK.B", "/a_b/...", "/.a/a./..a"},
		false: {"", "orders", "//", "//orders", "/orders//1", "/orders//", "/.", "/..", "/./orders",
			"/orders/.", "/orders/..", "/orders/../x", "/orders/%2e", "/orders%2f1", "/%", "/a~b", "/a+b",
			"/a:b", "/a;b", `/a\b`, "/é", "/a?b"},
	} {
		for _, path := range paths {
			if Plain([]byte(path)) != want {
				t.Errorf("%q: want %v", path, want)
			}
		}
	}
}
