package evidence

import (
	"bufio"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"posttrade/journal/evidence/verify"
	"posttrade/ring/must"
)

// The verifiers of others, as files: .ci/foreign fetches them by version and gives them.
var (
	fsckFlag        = flag.String("fsck", "", "tessera/cmd/fsck")
	litewitnessFlag = flag.String("litewitness", "", "torchwood/cmd/litewitness")
)

// TestALogOfAnySizeIsRight writes logs of sizes around the edges of tiles. Tessera's fsck, if it is
// given, and this verifier accept the folder, and neither accepts it with a changed bit.
func TestALogOfAnySizeIsRight(t *testing.T) {
	v := newVenue(t, 30)
	for _, size := range []uint64{0, 1, 255, 256, 257, 65_536, 70_000} {
		must.OK(t, os.RemoveAll(v.logDir()))
		l := v.log()
		f := must.Get(l.newFollower(l.put))(t)
		for f.tree.Size < size {
			leaf := verify.Leaf{}
			leaf.First, leaf.Count = verify.LeafRange(f.tree.Size)
			rand.Read(leaf.Root[:])
			must.OK(t, f.tree.Add(leaf.Append(nil)))
		}
		if size > 0 {
			f.leaf.StartAt(f.behind())
		} else {
			f.leaf.StartAt(0)
		}
		must.OK(t, l.sign(f))
		must.OK(t, f.close())
		keys := v.keys(l)
		names, read := folderOf(v.files())
		if _, err := keys.Folder(nil, names, read); err != nil {
			t.Errorf("%d leaves: %v", size, err)
		}
		if said := v.fsck(t, l); said != "" {
			t.Errorf("%d leaves: %s", size, said)
		}
		if size == 0 {
			continue
		}
		name := filepath.Join(v.logDir(), names[len(names)/2])
		text := must.Get(os.ReadFile(name))(t)
		text[len(text)-1] ^= 1
		must.OK(t, os.WriteFile(name, text, 0o644))
		if said := v.fsck(t, l); said == "" && *fsckFlag != "" {
			t.Errorf("%d leaves: a flipped bit of %s is not found", size, name)
		}
	}
}

// fsck is what Tessera's fsck has against a log, "" for nothing. One of its workers ends at each
// file that it refuses, and without any left it waits for ever: a changed bit costs one a level at
// most.
func (v *venue) fsck(t *testing.T, l *Log) string {
	t.Helper()
	if *fsckFlag == "" {
		return ""
	}
	key := filepath.Join(v.logDir(), pubName)
	said, err := exec.Command(*fsckFlag, "--ui=false", "-N=8", "--storage_url=file://"+v.logDir()+"/",
		"--public_key="+key, "--origin="+l.o.Origin).CombinedOutput()
	if err != nil || strings.Contains(string(said), "failed") {
		return fmt.Sprint(string(said), err)
	}
	return ""
}

// TestALitewitnessCosigns is TestHeadsArePublishedWhenAQuorumHasCosigned and
// TestAForkIsRefusedByAWitness with a witness of others, if one is given, and with the test's own.
func TestALitewitnessCosigns(t *testing.T) {
	v := newVenue(t, 31)
	v.trade(10)
	key, origin := v.log().VKey(), v.log().o.Origin
	var witnesses []*Witness
	if *litewitnessFlag == "" {
		witnesses = v.withOrigin(newTestWitness(t, "w.example/a", key))
	} else {
		witnesses = litewitness(t, origin, key)
	}
	keep := func(v *venue) *Log {
		t.Helper()
		o := v.logOptions()
		o.Witnesses, o.Quorum = witnesses, 1
		l := must.Get(Open(v.j, o))(t)
		head, _ := v.j.Head()
		v.keepUntil(l, func(s State) bool { return s.Failed != nil || s.Cosigned == head })
		return l
	}
	for range 4 {
		v.trade(700)
		l := keep(v)
		if s := l.State(); s.Failed != nil {
			t.Fatal(s.Failed)
		}
		witnesses[0].size = 0 // as after a start: the witness says where it stands
	}
	fork := v.rewritten(100)
	must.OK(t, removeAllBut(fork.logDir(), keyName))
	fork.trade(700)
	l := keep(fork)
	if s := l.State(); !errors.Is(s.Failed, errFork) || s.Signed != 0 {
		t.Errorf("%+v", s)
	}
}

// litewitness starts a litewitness that knows a log.
func litewitness(t *testing.T, origin, key string) []*Witness {
	t.Helper()
	dir, err := os.MkdirTemp("", "lw") // the path of a socket is short
	must.OK(t, err)
	at := func(name string) string { return filepath.Join(dir, name) }
	run := func(env, name string, args ...string) string {
		t.Helper()
		c := exec.Command(name, args...)
		c.Env = append(os.Environ(), env)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		return string(out)
	}
	agent := exec.Command("ssh-agent", "-D", "-a", at("agent"))
	must.OK(t, agent.Start())
	run("", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", at("id"))
	wait(t, func() bool { _, err := os.Stat(at("agent")); return err == nil })
	run("SSH_AUTH_SOCK="+at("agent"), "ssh-add", at("id"))
	finger := strings.Fields(run("", "ssh-keygen", "-l", "-E", "sha256", "-f", at("id")))[1]
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	address := free.Addr().String()
	must.OK(t, free.Close())
	w := exec.Command(*litewitnessFlag, "-ssh-agent", at("agent"), "-name", "w.example/lite",
		"-listen", address, "-db", at("db"), "-key", finger)
	said, err := w.StderrPipe()
	must.OK(t, err)
	must.OK(t, w.Start())
	t.Cleanup(func() {
		_ = w.Process.Kill()
		_ = agent.Process.Kill()
		_, _ = w.Process.Wait()
		_, _ = agent.Process.Wait()
		must.OK(t, os.RemoveAll(dir))
	})
	lines := bufio.NewScanner(said)
	vkey := ""
	for vkey == "" && lines.Scan() {
		t.Log(lines.Text())
		if m := regexp.MustCompile(`vkey=(\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			vkey = strings.Trim(m[1], `"`)
		}
	}
	go func() {
		for lines.Scan() { // so that it never waits for its reader
		}
	}()
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	empty := "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
	run("", "sqlite3", "-cmd", ".timeout 10000", at("db"), "INSERT INTO log VALUES ("+quote(origin)+
		", 0, "+quote(empty)+"); INSERT INTO key VALUES ("+quote(origin)+", "+quote(key)+");")
	c, err := verify.NewCosigner(vkey)
	must.OK(t, err)
	wait(t, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			err = conn.Close()
		}
		return err == nil
	})
	return []*Witness{{Verifier: c, URL: "http://" + address}}
}

// wait polls until something is so.
func wait(t *testing.T, so func() bool) {
	t.Helper()
	late := time.After(time.Minute)
	for !so() {
		select {
		case <-late:
			t.Fatal("it does not happen")
		case <-time.After(5 * time.Millisecond):
		}
	}
}
