package installation

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/ring/must"
)

// noCPU is a processor that the setting allows and that the machine does not have.
const noCPU = "1023"

// A thread that cannot be bound to the processor of its setting refuses the start: exit code 2, the
// setting's name, no listener, and nothing in data.dir that the next start would meet but the file
// of its lock.
func TestACPUThatIsNotThereRefusesTheStart(t *testing.T) {
	for _, name := range []string{"matcher.cpu", "recorder.cpu"} {
		data := t.TempDir()
		c := apptest.Settled(t, append(anyPorts(data), "sidecars.enabled", "false", name, noCPU)...)
		var stdout, stderr bytes.Buffer
		code := ServeToTheEnd(t.Context(), c, EngineOptions(c), &stdout, NewFatalStderr(&stderr))
		if code != settings.ExitUsage || stdout.Len() > 0 {
			t.Errorf("%s: exit code %d, printed %q", name, code, &stdout)
		}
		if !strings.Contains(stderr.String(), "posttrade: "+name+": ring: pin cpu="+noCPU) {
			t.Errorf("%s: no error names it:\n%s", name, &stderr)
		}
		if names := namesIn(t, data); !slices.Equal(names, []string{"lock"}) {
			t.Errorf("%s: left in data.dir: %v", name, names)
		}
	}
}

// A thread that fails when the engine has begun ends the engine: Fatal is called, waiting callers
// are told, and a stop does not wait for what no thread will do.
func TestAThreadThatFailsEndsTheEngine(t *testing.T) {
	for name, part := range map[string]string{"matcher.cpu": "matcher", "recorder.cpu": "recorder"} {
		c := apptest.Settled(t, append(anyPorts(t.TempDir()), name, noCPU)...)
		o := EngineOptions(c)
		failed := make(chan error, 1)
		o.Fatal = func(err error) { failed <- err }
		k := must.Get(engine.Open(o))(t)
		err := <-failed
		if !errors.Is(err, engine.ErrEnded) || !strings.Contains(err.Error(), part+": ") {
			t.Errorf("%s: %v", name, err)
		}
		err = desk.SubmitUntil(t.Context(), k.Desk, 1, func(_ int, c *matcher.Command) error {
			*c = matcher.NewCommand(matcher.PriceTick)
			return nil
		}, func(*desk.Answer) error { return nil })
		if !errors.Is(err, desk.ErrFailed) {
			t.Errorf("%s: a command to an engine that has ended: %v", name, err)
		}
		if err := k.Stop(); !errors.Is(err, engine.ErrEnded) {
			t.Errorf("%s: stop: %v", name, err)
		}
	}
}

// The last line says what has failed, in the form of the log.
func TestTheLastLineNamesTheEngine(t *testing.T) {
	for _, json := range []bool{false, true} {
		var out bytes.Buffer
		stderr := NewFatalStderr(&out)
		ends := make(chan int, 1)
		stderr.json, stderr.end = json, func(code int) { ends <- code }
		go stderr.Failed(engine.ErrEnded)
		if code := <-ends; code != settings.ExitFailed {
			t.Errorf("exit code %d", code)
		}
		slog.New(slog.NewTextHandler(stderr, nil)).Info("more")
		if said := out.String(); strings.Count(said, "\n") != 1 ||
			!strings.Contains(said, "engine failed, stopping") ||
			!strings.Contains(said, engine.ErrEnded.Error()) {
			t.Errorf("said %q", said)
		}
	}
}
