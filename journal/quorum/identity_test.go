package quorum

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"posttrade/ring/must"
)

// Whatever byte of the identity is changed, and wherever it is cut, the disk does not take part. A
// file without a checksum, of an older build, is taken and gets one; an id stays what it is.
func TestDamagedIdentityIsRefused(t *testing.T) {
	list, dir := freeMembers(t, 2), t.TempDir()
	path := filepath.Join(dir, identityName)
	open := func() (id string, err error) {
		n, err := Open(Options{Dir: dir, Member: "1", Members: list, Storage: newMemory(),
			Genesis: func() ([]byte, error) { return []byte("g"), nil }})
		if err != nil {
			return "", err
		}
		return string(n.id), n.Close()
	}
	first := must.Get(open())(t)
	if again := must.Get(open())(t); again != first {
		t.Errorf("identity %s, then %s", first, again)
	}
	text := must.Get(os.ReadFile(path))(t)
	if !bytes.HasPrefix(text, []byte("server ")) {
		t.Errorf("an older build takes part with %q", text)
	}
	refused := func(damaged []byte) {
		t.Helper()
		must.OK(t, os.WriteFile(path, damaged, 0o600))
		if _, err := open(); !errors.Is(err, ErrIdentity) {
			t.Errorf("%q: %v", damaged, err)
		}
		if _, err := ReadIdentity(dir); !errors.Is(err, ErrIdentity) {
			t.Errorf("%q is read: %v", damaged, err)
		}
	}
	for i := range text {
		damaged := bytes.Clone(text)
		damaged[i] ^= 1
		refused(damaged)
		refused(text[:i])
	}
	refused(append(bytes.Clone(text), '\n'))
	refused([]byte(first[:len(first)-1]))
	refused([]byte(first + "\n"))

	must.OK(t, os.WriteFile(path, []byte(first), 0o600))
	if id, err := open(); id != first || err != nil {
		t.Errorf("without a checksum: %s, %v", id, err)
	}
	if now := must.Get(os.ReadFile(path))(t); !bytes.Equal(now, text) {
		t.Errorf("rewritten as %q", now)
	}
}
