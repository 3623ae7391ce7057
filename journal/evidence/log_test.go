package evidence

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/ring/must"
)

// files are the files of a log, by name.
func (v *venue) files() map[string]string {
	v.t.Helper()
	all := map[string]string{}
	must.OK(v.t, filepath.WalkDir(v.logDir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, v.logDir()+"/")] = string(text)
		return err
	}))
	return all
}

func sameFiles(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("%s: %d bytes, want %d", name, len(got[name]), len(want[name]))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: was not there before", name)
		}
	}
}

// bigVenue has a log with full tiles, partial ones and several heads, some of one tree size. A
// short one has no full tiles.
func bigVenue(t *testing.T, seed uint64) *venue {
	v := newVenue(t, seed)
	full := 256 * 256
	if testing.Short() {
		full = 256
	}
	for _, n := range []int{100, 50, 3000, full, 700, 10, 4000} {
		v.trade(n)
		v.keep(v.log())
	}
	return v
}

// TestWhatIsDerivedComesBack deletes derived files, cuts them short and fills them with zeros. All
// come back as they were.
func TestWhatIsDerivedComesBack(t *testing.T) {
	v := bigVenue(t, 3)
	v.snapshot()
	want := v.files()
	spoil := map[string]func(path string) error{
		"deleted": os.Remove,
		"cut": func(path string) error {
			info := must.Get(os.Stat(path))(t)
			return os.Truncate(path, info.Size()/2)
		},
		"zeros": func(path string) error {
			info := must.Get(os.Stat(path))(t)
			return os.WriteFile(path, make([]byte, info.Size()), 0o644)
		},
	}
	for turn, name := range slices.Sorted(maps.Keys(spoil)) {
		f := spoil[name]
		for n, file := range slices.Sorted(maps.Keys(want)) {
			if file == keyName || file == checkpointsName {
				continue
			}
			if testing.Short() && n%len(spoil) != turn { // each file in one way
				continue
			}
			must.OK(t, f(filepath.Join(v.logDir(), file)))
			v.keep(v.log())
			if t.Failed() {
				t.Fatalf("%s %s", file, name)
			}
			sameFiles(t, v.files(), want)
		}
	}
	must.OK(t, os.RemoveAll(filepath.Join(v.logDir(), tileName)))
	must.OK(t, os.Remove(filepath.Join(v.logDir(), checkpointName)))
	v.keep(v.log())
	sameFiles(t, v.files(), want)
}

// TestAFileThatContradictsTheJournalStopsTheLog flips a bit in every file in turn.
func TestAFileThatContradictsTheJournalStopsTheLog(t *testing.T) {
	v := bigVenue(t, 4)
	v.snapshot()
	want := v.files()
	for _, file := range slices.Sorted(maps.Keys(want)) {
		if file == keyName || file == pubName || file == checkpointName {
			continue // pub and checkpoint are copies, and written anew
		}
		text := []byte(want[file])
		text[len(text)/2] ^= 4
		path := filepath.Join(v.logDir(), file)
		must.OK(t, os.WriteFile(path, text, 0o644))
		l := v.log()
		v.keep(l)
		switch s := l.State(); {
		case s.Err == nil:
			t.Errorf("%s: a flipped bit is not found", file)
		case !errors.Is(s.Err, ErrContradiction) || !strings.Contains(s.Err.Error(), file):
			t.Errorf("%s: %v", file, s.Err)
		case s.Behind.IsZero():
			t.Errorf("%s: a log that has stopped is not late", file)
		case s.Divergences != 1:
			t.Errorf("%s: %d divergences", file, s.Divergences)
		}
		must.OK(t, os.WriteFile(path, []byte(want[file]), 0o644))
	}
	v.keep(v.log())
	sameFiles(t, v.files(), want)
}

// TestAStoppedLogStaysLate: the recheck stops a log while its loop signs the last commands, or
// publishes a head with cosignatures.
func TestAStoppedLogStaysLate(t *testing.T) {
	v := newVenue(t, 4)
	v.trade(100)
	l := v.log()
	v.keep(l)
	if s := l.State(); !s.Behind.IsZero() {
		t.Fatalf("late with everything signed: %+v", s)
	}
	f := must.Get(l.newFollower(l.put))(t)
	defer func() { must.OK(t, f.close()) }()
	f.leaf.StartAt(0)
	l.Stop(ErrContradiction)
	must.OK(t, l.sign(f)) // there is nothing new to sign
	if s := l.State(); s.Behind.IsZero() || s.Err == nil {
		t.Errorf("not late behind the signing: %+v", s)
	}
	if !must.Get(l.publish(l.Checkpoint(), l.published()))(t) {
		t.Error("the head was not published again")
	}
	if l.State().Behind.IsZero() {
		t.Error("not late behind the publishing")
	}
}

// TestAHalfWrittenHeadIsRemoved: a crash may leave a part of the last note.
func TestAHalfWrittenHeadIsRemoved(t *testing.T) {
	v := newVenue(t, 5)
	v.trade(300)
	v.keep(v.log())
	want := v.files()
	v.trade(300)
	v.keep(v.log())
	whole := v.files()[checkpointsName]
	added := whole[len(want[checkpointsName]):]
	for cut := range len(added) {
		for name, text := range want {
			must.OK(t, os.WriteFile(filepath.Join(v.logDir(), name), []byte(text), 0o644))
		}
		must.OK(t, os.WriteFile(filepath.Join(v.logDir(), checkpointsName),
			[]byte(want[checkpointsName]+added[:cut]), 0o644))
		l := v.log()
		if got := l.Checkpoint(); string(got) != want[checkpointName] {
			t.Fatalf("cut at %d: %s", cut, got)
		}
		if got := v.files()[checkpointsName]; got != want[checkpointsName] {
			t.Fatalf("cut at %d: %s", cut, got)
		}
	}
	l := v.log()
	v.keep(l)
	if s := l.State(); s.Err != nil || s.Signed != 600 {
		t.Errorf("%+v", s)
	}
}

// TestTheTreeDoesNotDependOnBlocks builds the same history twice, in other blocks.
func TestTheTreeDoesNotDependOnBlocks(t *testing.T) {
	v := newVenue(t, 6)
	v.trade(2000)
	v.keep(v.log())
	w := newVenue(t, 7)
	w.genesis = v.genesis
	must.OK(t, w.j.Close())
	w.dir = t.TempDir()
	w.open()
	must.OK(t, w.j.Create(v.genesis.Marshal()))
	engine := must.Get(matcher.New(v.genesis))(t)
	must.OK(t, w.engine.Close())
	w.engine = engine
	must.OK(t, v.j.Replay(t.Context(), 1, func(cmds []matcher.Command, ids journal.ClientIDs) error {
		for i := range cmds {
			w.decide(cmds[i], string(ids.Of(cmds[i].InputSeq)))
			if w.rng.IntN(40) == 0 {
				w.commit()
			}
		}
		return nil
	}))
	w.commit()
	must.OK(t, w.j.WaitStable(context.Background(), 2000))
	w.keep(w.log())
	want, got := v.files(), w.files()
	for name := range want {
		if strings.HasPrefix(name, "tile/") && want[name] != got[name] {
			t.Errorf("%s differs", name)
		}
	}
}

// TestARewrittenHistoryIsFound: the journal is another one, whole in itself, under the same
// genesis.
func TestARewrittenHistoryIsFound(t *testing.T) {
	v := newVenue(t, 8)
	v.trade(3000)
	v.keep(v.log())
	rewritten := v.rewritten(1500)
	l := rewritten.log()
	rewritten.keep(l)
	if s := l.State(); !errors.Is(s.Err, ErrContradiction) {
		t.Errorf("%+v", s)
	}
	// Without its tiles the log is made anew, and meets the published heads.
	must.OK(t, os.RemoveAll(filepath.Join(rewritten.logDir(), tileName)))
	l = rewritten.log()
	rewritten.keep(l)
	if s := l.State(); !errors.Is(s.Err, ErrContradiction) ||
		!strings.Contains(s.Err.Error(), checkpointsName) {
		t.Errorf("%+v", s)
	}
}

// rewritten is a venue with the same log and genesis, and a history in which one command asks for
// another quantity, with everything that follows from it.
func (v *venue) rewritten(at uint64) *venue {
	v.t.Helper()
	w := &venue{t: v.t, dir: v.t.TempDir(), genesis: v.genesis, rng: v.rng}
	w.open()
	must.OK(v.t, w.j.Create(v.genesis.Marshal()))
	var err error
	w.engine, err = matcher.New(v.genesis)
	must.OK(v.t, err)
	w.out = matcher.NewOutlet(8, func(events []matcher.Event) { w.said = append(w.said, events...) })
	v.t.Cleanup(func() { must.OK(v.t, errors.Join(w.j.Close(), w.engine.Close())) })
	head, _ := v.j.Head()
	done := false
	ctx := context.Background()
	must.OK(v.t, v.j.Replay(ctx, 1, func(cmds []matcher.Command, ids journal.ClientIDs) error {
		for i := range cmds {
			c := cmds[i]
			if c.InputSeq >= at && !done && c.Type == matcher.OrderNew && c.TemplateID == 1 {
				c.Qty, done = c.Qty+1, true
			}
			w.decide(c, string(ids.Of(cmds[i].InputSeq)))
		}
		w.commit()
		return nil
	}))
	must.OK(v.t, w.j.WaitStable(context.Background(), head))
	must.OK(v.t, os.MkdirAll(v.logDir(), 0o755))
	must.OK(v.t, os.CopyFS(w.logDir(), os.DirFS(v.logDir())))
	return w
}

// TestAShorterJournalStopsTheLog: the tail that was signed is not there any more.
func TestAShorterJournalStopsTheLog(t *testing.T) {
	v := newVenue(t, 9)
	v.trade(1000)
	w := v.rewritten(1 << 40) // the same history
	v.trade(10)
	v.keep(v.log())
	must.OK(t, os.RemoveAll(w.logDir()))
	must.OK(t, os.CopyFS(w.logDir(), os.DirFS(v.logDir())))
	l := w.log()
	w.keep(l)
	if s := l.State(); !errors.Is(s.Err, ErrContradiction) || s.Signed != 1010 {
		t.Errorf("%+v", s)
	}
	at := must.Get(Newest(w.logDir()))(t)
	if at.Head != 1010 {
		t.Errorf("%+v", at)
	}
}

// TestTheNewestHeadIsFoundAtTheEnd: in a file of heads that is longer than what a start reads, with
// a part of a note behind the last one.
func TestTheNewestHeadIsFoundAtTheEnd(t *testing.T) {
	v := newVenue(t, 15)
	v.trade(700)
	v.keep(v.log())
	name := filepath.Join(v.logDir(), checkpointsName)
	one := must.Get(os.ReadFile(name))(t)
	for n := tailBytes/len(one) - 3; n < tailBytes/len(one)+300; n += 37 {
		text := strings.Repeat(string(one), n)
		must.OK(t, os.WriteFile(name, []byte(text+string(one[:n%len(one)])), 0o644))
		l := v.log()
		if got := string(l.Checkpoint()); got+"\n" != string(one) {
			t.Fatalf("%d notes: %q", n, got)
		}
		if s := l.State(); s.Size != 3 || s.Head != 700 || s.Signed != 700 {
			t.Fatalf("%d notes: %+v", n, s)
		}
		if got, err := Newest(v.logDir()); err != nil || got.Head != 700 {
			t.Fatalf("%d notes: %+v %v", n, got, err)
		}
		if got := v.files()[checkpointsName]; got != text {
			t.Fatalf("%d notes: %d bytes, want %d", n, len(got), len(text))
		}
	}
	must.OK(t, os.WriteFile(name, []byte(strings.Repeat("x\n", tailBytes)), 0o644))
	if l := v.log(); l.State().Err != nil && !errors.Is(l.State().Err, ErrContradiction) {
		t.Error(l.State().Err)
	}
}

// TestMissingHeadsAreTold: a start says when heads that were published are not in the file
// checkpoints. The newest one comes back from checkpoint, so it says so once. A crash leaves the
// two files in other states, of which nothing is said.
func TestMissingHeadsAreTold(t *testing.T) {
	v := newVenue(t, 15)
	v.trade(300)
	v.keep(v.log())
	name := filepath.Join(v.logDir(), checkpointsName)
	one := must.Get(os.ReadFile(name))(t)
	v.trade(300)
	v.keep(v.log())
	whole := must.Get(os.ReadFile(name))(t)
	newest := must.Get(os.ReadFile(filepath.Join(v.logDir(), checkpointName)))(t)
	for what, tt := range map[string]struct {
		heads []byte // nil: the file is removed
		told  string
	}{
		"all are there":       {heads: whole},
		"half a note follows": {heads: append(bytes.Clone(whole), one[:40]...)},
		"the newest is cut":   {one, "ends at the head of sequence 300, 600 was published"},
		"within a note":       {whole[:len(whole)-20], "ends at the head of sequence 300, 600 was"},
		"emptied":             {[]byte{}, "ends at the head of sequence 0, 600 was published"},
		"removed":             {nil, "ends at the head of sequence 0, 600 was published"},
	} {
		must.OK(t, os.WriteFile(name, tt.heads, 0o644))
		if tt.heads == nil {
			must.OK(t, os.Remove(name))
		}
		must.OK(t, os.WriteFile(filepath.Join(v.logDir(), checkpointName), newest, 0o644))
		for _, want := range []string{tt.told, ""} {
			told := ""
			o := v.logOptions()
			o.Warn = func(err error) { told += err.Error() }
			l := must.Get(Open(v.j, o))(t)
			if !strings.Contains(told, want) || (want == "") != (told == "") ||
				want != "" && !strings.Contains(told, name) {
				t.Errorf("%s: told %q, want %q", what, told, want)
			}
			if l.published().Head != 600 {
				t.Errorf("%s: the newest head is %d", what, l.published().Head)
			}
		}
	}
	must.OK(t, os.WriteFile(name, whole, 0o644)) // a crash leaves checkpoint behind
	must.OK(t, os.WriteFile(filepath.Join(v.logDir(), checkpointName), one[:len(one)-1], 0o644))
	o := v.logOptions()
	o.Warn = func(err error) { t.Error(err) }
	must.Get(Open(v.j, o))(t)
}

// TestANewKeySignsTheHeadAnew: an auditor that is given the new key need not wait for a trade. The
// heads of both keys stay.
func TestANewKeySignsTheHeadAnew(t *testing.T) {
	v := newVenue(t, 17)
	v.trade(600)
	l := v.log()
	v.keep(l)
	before := v.keys(l)
	must.OK(t, os.Remove(filepath.Join(v.logDir(), keyName)))
	old := l.Checkpoint()
	l = v.log()
	after := v.keys(l)
	v.keepUntil(l, func(State) bool {
		_, _, err := after.Open(l.Checkpoint())
		return err == nil
	})
	if _, _, err := before.Open(old); err != nil {
		t.Error(err)
	}
	want := string(old) + "\n" + string(l.Checkpoint()) + "\n"
	if got := v.files()[checkpointsName]; got != want {
		t.Errorf("the heads\n%s\nwant\n%s", got, want)
	}
	v.trade(1)
	v.keep(v.log())
	if got := strings.Count(v.files()[checkpointsName], "\n\n—"); got != 3 {
		t.Errorf("%d heads, want 3", got)
	}
}
