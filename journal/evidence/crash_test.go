package evidence

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posttrade/ring/must"
)

var errCrash = errors.New("the machine has stopped")

// crashAfter fails from the n-th change of the disk on, 0-based, and counts them.
func crashAfter(n int, count *int) func() error {
	return func() error {
		*count++
		if *count > n {
			return errCrash
		}
		return nil
	}
}

// TestACrashAtAnyWrite stops a log at every change of the disk in turn. The log that is opened next
// comes to the files that a log without a crash has, but for heads, of which it may have other
// ones.
func TestACrashAtAnyWrite(t *testing.T) {
	v := newVenue(t, 13)
	v.trade(255*256 - 40)
	v.keep(v.log())
	before := v.files()
	v.trade(300)
	v.keep(v.log())
	want := v.files()
	crashes, stride := 0, 1
	if testing.Short() {
		stride = 37
	}
	for n := 0; ; n += stride {
		must.OK(t, os.RemoveAll(v.logDir()))
		for name, text := range before {
			path := filepath.Join(v.logDir(), name)
			must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must.OK(t, os.WriteFile(path, []byte(text), 0o644))
		}
		count := 0
		o := v.logOptions()
		o.step = crashAfter(n, &count)
		l, err := Open(v.j, o)
		if err == nil {
			err = l.once()
		}
		if err != nil && !errors.Is(err, errCrash) {
			t.Fatalf("crash %d: %v", n, err)
		}
		l = v.log()
		v.keep(l)
		if s := l.State(); s.Err != nil {
			t.Fatalf("after crash %d: %v", n, s.Err)
		}
		got := v.files()
		for name, text := range want {
			if strings.HasPrefix(name, "tile/") && got[name] != text {
				t.Fatalf("after crash %d: %s has %d bytes, want %d", n, name, len(got[name]), len(text))
			}
		}
		for name := range got {
			if want[name] == "" && strings.HasPrefix(name, "tile/") {
				t.Fatalf("after crash %d: there is a file %s", n, name)
			}
		}
		if count <= n {
			break
		}
		crashes += stride
	}
	if crashes < 20 {
		t.Errorf("%d crashes", crashes)
	}
}

// once goes on to the head and signs it.
func (l *Log) once() error {
	f, _, err := l.resume(context.Background())
	if err != nil {
		return err
	}
	return errors.Join(l.step(context.Background(), f), f.close())
}
