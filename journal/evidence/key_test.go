package evidence

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"posttrade/ring/must"
)

// TestPublicKeyIsWrittenWhereItDiffers: reading a key that was written before changes nothing, so
// it works where nothing may be written.
func TestPublicKeyIsWrittenWhereItDiffers(t *testing.T) {
	dir, long := t.TempDir(), time.Unix(1_000_000_000, 0)
	s := must.Get(LoadSigner(dir, "", "log"))(t)
	name := filepath.Join(dir, pubName)
	must.OK(t, os.Chtimes(name, long, long))
	must.Get(LoadSigner(dir, "", "log"))(t)
	if info := must.Get(os.Stat(name))(t); !info.ModTime().Equal(long) {
		t.Error("written again")
	}
	must.OK(t, os.WriteFile(name, []byte("another\n"), 0o600))
	must.Get(LoadSigner(dir, "", "log"))(t)
	if got := string(must.Get(os.ReadFile(name))(t)); got != s.VKey+"\n" {
		t.Errorf("log.pub is %q", got)
	}
}
