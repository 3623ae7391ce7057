package evidence

import (
	"errors"
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

// TestAKeyThatIsNoneIsRefused: a file that is damaged or empty, and the key of another log. No
// other key is made in its place.
func TestAKeyThatIsNoneIsRefused(t *testing.T) {
	dir := t.TempDir()
	must.Get(LoadSigner(dir, "", "log"))(t)
	name := filepath.Join(dir, keyName)
	whole := must.Get(os.ReadFile(name))(t)
	for what, text := range map[string]string{
		"damaged": string(whole[:len(whole)/2]), "empty": "", "another's": string(whole),
	} {
		must.OK(t, os.WriteFile(name, []byte(text), 0o600))
		origin := "log"
		if what == "another's" {
			origin = "other"
		}
		if _, err := LoadSigner(dir, "", origin); !errors.Is(err, ErrKey) {
			t.Errorf("%s: %v", what, err)
		}
		if got := must.Get(os.ReadFile(name))(t); string(got) != text {
			t.Errorf("%s: the file is now %q", what, got)
		}
	}
}
