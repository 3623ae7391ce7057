package evidence

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"posttrade/journal/evidence/verify"
	"posttrade/ring/must"
)

// testWitness is a C2SP witness of one log.
type testWitness struct {
	t    *testing.T
	vkey string
	name string
	id   uint32
	key  ed25519.PrivateKey
	log  note.Verifier
	url  string

	mu    sync.Mutex
	tree  tlog.Tree
	away  bool
	wrong int                      // so many answers name a size that the log never had
	spoil func(line string) string // its answer; nil: as it is
}

func newTestWitness(t *testing.T, name, logKey string) *testWitness {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	must.OK(t, err)
	raw := append([]byte{4}, public...)
	sum := sha256.Sum256(append([]byte(name+"\n"), raw...))
	w := &testWitness{t: t, name: name, id: binary.BigEndian.Uint32(sum[:]), key: private}
	w.vkey = fmt.Sprintf("%s+%08x+%s", name, w.id, base64.StdEncoding.EncodeToString(raw))
	w.log, err = note.NewVerifier(logKey)
	must.OK(t, err)
	server := httptest.NewServer(http.HandlerFunc(w.handle))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *testWitness) handle(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away || r.URL.Path != "/add-checkpoint" {
		http.Error(out, "away", http.StatusServiceUnavailable)
		return
	}
	if w.wrong > 0 {
		w.wrong--
		out.WriteHeader(http.StatusConflict)
		fmt.Fprintln(out, 1<<40)
		return
	}
	body, _ := io.ReadAll(r.Body)
	head, text, _ := strings.Cut(string(body), "\n\n")
	n, err := note.Open([]byte(text), note.VerifierList(w.log))
	if err != nil {
		http.Error(out, err.Error(), http.StatusForbidden)
		return
	}
	lines := strings.Split(head, "\n")
	tree, err := tlog.ParseTree([]byte("go.sum database tree\n" +
		strings.SplitN(n.Text, "\n", 2)[1]))
	var old int64
	if _, scan := fmt.Sscanf(lines[0], "old %d", &old); err != nil || scan != nil || old > tree.N {
		http.Error(out, fmt.Sprint(err, scan), http.StatusBadRequest)
		return
	}
	if old != w.tree.N {
		out.Header().Set("Content-Type", "text/x.tlog.size")
		out.WriteHeader(http.StatusConflict)
		fmt.Fprintln(out, w.tree.N)
		return
	}
	var proof tlog.TreeProof
	for _, l := range lines[1:] {
		h, err := tlog.ParseHash(l)
		if err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		proof = append(proof, h)
	}
	same := old == tree.N && w.tree.Hash == tree.Hash
	if old > 0 && !same && tlog.CheckTree(proof, tree.N, tree.Hash, old, w.tree.Hash) != nil {
		http.Error(out, "no", http.StatusUnprocessableEntity)
		return
	}
	w.tree = tree
	fmt.Fprint(out, w.sign(n.Text))
}

func (w *testWitness) sign(text string) string {
	now := uint64(time.Now().Unix())
	sig := binary.BigEndian.AppendUint32(nil, w.id)
	sig = binary.BigEndian.AppendUint64(sig, now)
	signed := fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", now, text)
	sig = append(sig, ed25519.Sign(w.key, signed)...)
	line := fmt.Sprintf("— %s %s\n", w.name, base64.StdEncoding.EncodeToString(sig))
	if w.spoil != nil {
		line = w.spoil(line)
	}
	return line
}

// with reads the file of witnesses as a start does.
func (v *venue) with(quorum int, witnesses ...*testWitness) *Log {
	v.t.Helper()
	text := "# the witnesses of a test\n\n"
	for _, w := range witnesses {
		text += w.vkey + " " + w.url + "/\n"
	}
	name := filepath.Join(v.t.TempDir(), "witnesses")
	must.OK(v.t, os.WriteFile(name, []byte(text), 0o600))
	o := v.logOptions()
	var err error
	o.Witnesses, err = ReadWitnesses(name)
	must.OK(v.t, err)
	o.Quorum = quorum
	l, err := Open(v.j, o)
	must.OK(v.t, err)
	return l
}

// TestHeadsArePublishedWhenAQuorumHasCosigned: growing heads, with one witness away and one that
// signs rubbish; the published note is proven with the witnesses' keys.
func TestHeadsArePublishedWhenAQuorumHasCosigned(t *testing.T) {
	v := newVenue(t, 20)
	v.trade(100)
	key := v.log().VKey()
	a, b := newTestWitness(t, "w.example/a", key), newTestWitness(t, "w.example/b", key)
	c := newTestWitness(t, "w.example/c", key)
	c.spoil = func(line string) string { return strings.Replace(line, "/c ", "/c A", 1) }
	for range 4 {
		v.trade(400)
		l := v.with(2, a, b, c)
		v.keep(l)
		head, _ := v.j.Head()
		if s := l.State(); s.Err != nil || s.Signed != head || s.Cosigned != head {
			t.Fatalf("%+v", s)
		}
		keys, err := verify.ParseKeys([]string{key}, []string{a.vkey, b.vkey})
		must.OK(t, err)
		if _, _, err := keys.Open(l.Checkpoint()); err != nil {
			t.Error(err)
		}
		keys, err = verify.ParseKeys([]string{key}, []string{c.vkey})
		must.OK(t, err)
		_, _, err = keys.Open(l.Checkpoint())
		wantBlame(t, "the note", err, verify.BlameNote)
	}
	names, read := folderOf(v.files())
	keys := v.keys(v.log())
	if _, err := keys.Folder(nil, names, read); err != nil {
		t.Error(err)
	}
}

// TestAWitnessCannotSpoilAHead: package note reads a cosignature also with unused bits of its
// base64 set, and a verifier does not.
func TestAWitnessCannotSpoilAHead(t *testing.T) {
	v := newVenue(t, 25)
	v.trade(300)
	w := newTestWitness(t, "w.example/a", v.log().VKey())
	// What is unused behind 76 bytes is in the last letter.
	letters := strings.NewReplacer("A==", "B==", "Q==", "R==", "g==", "h==", "w==", "x==")
	w.spoil = letters.Replace
	l := v.with(1, w)
	v.keep(l)
	keys := must.Get(verify.ParseKeys([]string{l.VKey()}, []string{w.vkey}))(t)
	if _, _, err := keys.Open(l.Checkpoint()); err != nil {
		t.Error(err)
	}
	// A spoiled head that is kept is still one that the log's key has signed.
	must.OK(t, os.WriteFile(filepath.Join(v.logDir(), checkpointsName),
		[]byte(letters.Replace(string(l.Checkpoint()))+"\n"), 0o600))
	signed, err := SignedNewest(v.logDir(), filepath.Join(v.logDir(), keyName))
	if err != nil || !signed {
		t.Errorf("signed with the log's key: %v, %v", signed, err)
	}
}

// TestAWitnessThatIsAwayDelaysHeadsOnly: nothing is published, and when it is back everything is.
func TestAWitnessThatIsAwayDelaysHeadsOnly(t *testing.T) {
	v := newVenue(t, 21)
	v.trade(300)
	w := newTestWitness(t, "w.example/a", v.log().VKey())
	w.away = true
	l := v.with(1, w)
	v.keepUntil(l, func(s State) bool {
		return s.Head == 300 && s.Failed != nil && !s.Behind.IsZero() && s.Signed == 0
	})
	if l.Checkpoint() != nil || v.files()[checkpointName] != "" {
		t.Error("a head is published that no witness has cosigned")
	}
	w.mu.Lock()
	w.away = false
	w.mu.Unlock()
	v.keep(l)
	if s := l.State(); s.Signed != 300 || s.Failed != nil {
		t.Errorf("%+v", s)
	}
	// Without a quorum heads do not wait, and are cosigned all the same.
	v.trade(300)
	l = v.with(0, w)
	v.keepUntil(l, func(s State) bool { return s.Cosigned == 600 })
	w.mu.Lock()
	w.away = true
	w.mu.Unlock()
	v.trade(10)
	l = v.with(0, w)
	v.keep(l)
	if s := l.State(); s.Signed != 610 || s.Cosigned == 610 {
		t.Errorf("%+v", s)
	}
}

// TestAHeadIsCosignedAfterABusyWitness: a witness is busy with a head while the next one, behind
// which nothing comes, is made. The cosignature of the first comes too late to be published, so it
// does not count.
func TestAHeadIsCosignedAfterABusyWitness(t *testing.T) {
	v := newVenue(t, 24)
	v.trade(300)
	w := newTestWitness(t, "w.example/a", v.log().VKey())
	l := v.with(0, w)
	signed := 0
	w.spoil = func(line string) string {
		if signed++; signed == 2 {
			if s := l.State(); s.Cosigned != 0 {
				t.Errorf("cosigned=%d, and no published head has a cosignature", s.Cosigned)
			}
		}
		return line
	}
	w.mu.Lock()
	busy, asked := true, false
	v.keepUntil(l, func(s State) bool {
		if !asked && s.Signed == 300 {
			v.trade(300)
			asked = true
		}
		if busy && s.Signed == 600 {
			w.mu.Unlock()
			busy = false
		}
		return s.Cosigned == 600
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if signed < 2 {
		t.Errorf("the witness has signed %d heads, want 2 or more", signed)
	}
}

// TestAForkIsRefusedByAWitness: a second history under the same key gets no cosignature.
func TestAForkIsRefusedByAWitness(t *testing.T) {
	v := newVenue(t, 22)
	v.trade(3000)
	w := newTestWitness(t, "w.example/a", v.log().VKey())
	v.keep(v.with(1, w))
	fork := v.rewritten(100)
	must.OK(t, removeAllBut(fork.logDir(), keyName))
	for range 2 { // of the same length, and longer
		l := fork.with(1, w)
		fork.keepUntil(l, func(s State) bool { return s.Failed != nil })
		if s := l.State(); !errors.Is(s.Failed, errFork) || s.Signed != 0 {
			t.Errorf("%+v", s)
		}
		fork.trade(1000)
	}
	short := newVenue(t, 23)
	short.trade(300)
	must.OK(t, os.MkdirAll(short.logDir(), 0o755))
	key := must.Get(os.ReadFile(filepath.Join(v.logDir(), keyName)))(t)
	must.OK(t, os.WriteFile(filepath.Join(short.logDir(), keyName), key, 0o600))
	o := short.logOptions()
	o.Origin, o.Quorum = v.log().o.Origin, 1
	o.Witnesses = short.withOrigin(w)
	l := must.Get(Open(short.j, o))(t)
	short.keepUntil(l, func(s State) bool { return s.Failed != nil })
	if s := l.State(); !errors.Is(s.Failed, errAhead) || s.Signed != 0 {
		t.Errorf("%+v", s)
	}
}

// TestAWitnessThatWasWrongOnceIsAskedAgain: by the same process, with the next head.
func TestAWitnessThatWasWrongOnceIsAskedAgain(t *testing.T) {
	v := newVenue(t, 24)
	v.trade(300)
	w := newTestWitness(t, "w.example/a", v.log().VKey())
	w.wrong = 2
	l := v.with(1, w)
	v.keepUntil(l, func(s State) bool { return s.Cosigned == 300 })
	if s := l.State(); s.Err != nil || s.Signed != 300 {
		t.Errorf("%+v", s)
	}
}

func (v *venue) withOrigin(w *testWitness) []*Witness {
	v.t.Helper()
	c := must.Get(verify.NewCosigner(w.vkey))(v.t)
	return []*Witness{{Verifier: c, URL: w.url}}
}

func TestBadFilesOfWitnessesAreNamed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "w")
	for _, text := range []string{"x", "x y z", "a+00000000+BAAA http://x", "a http://x",
		"posttrade/8d786f44134c2596+32e891c3+AQiCKV4qKfjzBKGb9WVQxtqRTJZPrie4vg6GKEE23mhO http://x"} {
		must.OK(t, os.WriteFile(name, []byte("\n"+text+"\n"), 0o600))
		if _, err := ReadWitnesses(name); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v", text, err)
		}
	}
	w := newTestWitness(t, "w.example/a", newVenue(t, 24).log().VKey())
	must.OK(t, os.WriteFile(name, []byte(w.vkey+" http://x\n"+w.vkey+" http://y\n"), 0o600))
	if _, err := ReadWitnesses(name); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("one witness on two lines: %v", err)
	}
	if _, err := ReadWitnesses(name + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	v := newVenue(t, 24)
	o := v.logOptions()
	o.Quorum = 1
	if _, err := Open(v.j, o); err == nil {
		t.Error("a quorum of one without a witness")
	}
}
