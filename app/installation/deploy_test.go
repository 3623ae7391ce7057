package installation

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/matcher/desk"
	"posttrade/ring/must"
)

const deploy = "../../deploy"

// ofPrometheus are metrics that Prometheus itself makes.
var ofPrometheus = []string{"up", "ALERTS"}

// usedMetrics are the names of metrics in the rules and boards, each with the file that uses it.
func usedMetrics(t *testing.T) map[string]string {
	t.Helper()
	used := map[string]string{}
	files, err := filepath.Glob(deploy + "/grafana/dashboards/*.json")
	if err != nil || len(files) != 4 {
		t.Fatalf("boards %v, %v", files, err)
	}
	metric := regexp.MustCompile(`\b(svc|go|process)_[a-z_]+\b`)
	for _, file := range append(files, rulesFile, deploy+"/prometheus/alerts_test.yml") {
		for _, name := range metric.FindAllString(readText(t, file), -1) {
			used[name] = file
		}
	}
	return used
}

// TestBoardsAndRulesUseMetricsThatAreServed asks a single node and a member for their metrics.
func TestBoardsAndRulesUseMetricsThatAreServed(t *testing.T) {
	in := install(t, t.TempDir(), "risk.bootstrap.enabled", "true")
	in.get("order-matcher", "/health")
	in.awaitMetrics(`svc_replica_ready{source="account"} 1`, `svc_replica_ready{source="security"} 1`)
	_, text := in.get("admin", "/metrics")
	_, kinds := scrape(string(text))
	served := map[string]bool{}
	for name, kind := range kinds {
		served[name] = true
		if kind == "histogram" {
			served[name+"_bucket"], served[name+"_count"], served[name+"_sum"] = true, true, true
		}
	}
	// A member's alone.
	for _, name := range metricsOfMembers {
		served[name] = true
	}
	served["svc_certificate_expiry_seconds"] = true // with TLS: TestMetricsOfTheProcess
	used := usedMetrics(t)
	if len(used) < 40 {
		t.Errorf("only %d metrics are used: %v", len(used), used)
	}
	for name, file := range used {
		if !served[name] && !slices.Contains(ofPrometheus, name) {
			t.Errorf("%s uses %s, which is not served", file, name)
		}
	}
}

// metricsOfMembers are served by members of a cluster alone.
var metricsOfMembers = []string{"svc_cluster_relayed_total", "svc_journal_heal_kept",
	"svc_journal_heal_wanted"}

// TestDeployNamesSettingsThatExist: a variable of deploy/ that is no setting's stops the start.
func TestDeployNamesSettingsThatExist(t *testing.T) {
	known := map[string]bool{}
	for _, s := range settings.List {
		known[settings.EnvName(s.Name)] = true
	}
	found := 0
	err := filepath.WalkDir(deploy, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		for _, name := range regexp.MustCompile(`\bPOSTTRADE_[A-Z0-9_]*[A-Z0-9]`).FindAllString(
			readText(t, path), -1) {
			if found++; !known[name] {
				t.Errorf("%s: %s is no setting's", path, name)
			}
		}
		return nil
	})
	if err != nil || found < 40 {
		t.Errorf("%d variables, %v", found, err)
	}
	for n, line := range strings.Split(readText(t, deploy+"/posttrade.conf"), "\n") {
		name, _, set := strings.Cut(strings.TrimPrefix(line, "#"), "=")
		if set && !strings.Contains(name, " ") && settings.Named(name) == nil {
			t.Errorf("posttrade.conf:%d: %s is no setting", n+1, name)
		}
	}
	chart := readText(t, deploy+"/helm/posttrade/templates/members.yaml")
	for _, want := range []string{"enableServiceLinks: false", "podAntiAffinity",
		"[/posttrade, health, --vote]", "runAsNonRoot: true", "readOnlyRootFilesystem: true",
		"replicas: 3"} {
		if !strings.Contains(chart, want) {
			t.Errorf("the chart has no %s", want)
		}
	}
}

// unitSettings are the values of each setting of the unit file.
func unitSettings(t *testing.T) map[string][]string {
	t.Helper()
	unit := map[string][]string{}
	for line := range strings.Lines(readText(t, deploy+"/posttrade.service")) {
		line = strings.TrimSpace(line)
		if name, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(name, "#") {
			unit[name] = append(unit[name], value)
		}
	}
	return unit
}

// TestTheUnitComesBackAfterEveryFailure: a process of Go that a panic or the watchdog's SIGABRT
// ends exits with 2, as one with a wrong setting does. So no exit code may keep the unit down, and
// the start limits alone bound the restarts.
func TestTheUnitComesBackAfterEveryFailure(t *testing.T) {
	unit := unitSettings(t)
	for _, name := range []string{"RestartPreventExitStatus", "SuccessExitStatus"} {
		if got := unit[name]; got != nil {
			t.Errorf("%s=%v: the unit stays down after such an exit", name, got)
		}
	}
	if got := unit["Restart"]; !slices.Equal(got, []string{"on-failure"}) {
		t.Errorf("Restart=%v", got)
	}
	number := func(name string) int {
		if len(unit[name]) != 1 {
			t.Fatalf("%s=%v, want one value", name, unit[name])
		}
		return must.Get(strconv.Atoi(strings.TrimSuffix(unit[name][0], "s")))(t)
	}
	// A start with a wrong setting ends within seconds: all of them fall into one interval.
	const start = 10
	burst := number("StartLimitBurst")
	takes := burst * (number("RestartSec") + start)
	if within := number("StartLimitIntervalSec"); burst < 3 || takes > within {
		t.Errorf("%d starts take up to %d s, the interval is %d s: the loop is not bounded", burst,
			takes, within)
	}
}

// TestTheUnitsLimitsSuitTheProgram runs the program as the unit would, where there is no systemd:
// with the unit's limits, umask and variables, its watchdog, and without a capability or a way to
// gain one; and ends it as the unit does.
func TestTheUnitsLimitsSuitTheProgram(t *testing.T) {
	unit := unitSettings(t)
	one := func(name string) string {
		if len(unit[name]) == 0 {
			t.Fatalf("the unit has no %s", name)
		}
		return unit[name][0]
	}
	if one("Type") != "notify" || one("NotifyAccess") != "main" {
		t.Errorf("the unit waits for %v", unit["Type"])
	}
	watchdog, err := strconv.Atoi(strings.TrimSuffix(one("WatchdogSec"), "s"))
	must.OK(t, err)
	dir, err := os.MkdirTemp("/var/tmp", "unit") // a way to it is open to every user
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	state := filepath.Join(dir, "state")
	binary := filepath.Join(dir, "posttrade")
	if err := os.Link(apptest.Program(t), binary); err != nil {
		text, err := os.ReadFile(apptest.Program(t))
		if err == nil {
			err = os.WriteFile(binary, text, 0o755)
		}
		must.OK(t, err)
	}
	must.OK(t, os.Mkdir(state, 0o700))
	manager := newTold(t)
	command := []string{"prlimit", "--nofile=" + atMost(t, one("LimitNOFILE")),
		"--core=" + one("LimitCORE"), "--nproc=" + one("LimitNPROC")}
	if os.Getuid() == 0 {
		for path, mode := range map[string]os.FileMode{dir: 0o755, filepath.Dir(manager.path): 0o755,
			manager.path: 0o777} {
			must.OK(t, os.Chmod(path, mode))
		}
		must.OK(t, os.Chown(state, 65532, 65532))
		command = append(command, "setpriv", "--reuid=65532", "--regid=65532",
			"--clear-groups", "--bounding-set=-all", "--inh-caps=-all")
	} else {
		command = append(command, "setpriv")
	}
	command = append(command, "--no-new-privs", "sh", "-c", `umask "$0"; exec "$@"`, one("UMask"),
		binary, "serve")
	flags := anyPorts(state)
	for i := 2; i < len(flags); i += 2 { // data.dir is the unit's
		command = append(command, "--"+flags[i]+"="+flags[i+1])
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = []string{"NOTIFY_SOCKET=" + manager.path,
		"WATCHDOG_USEC=" + strconv.Itoa(watchdog*1_000_000/100)} // a hundredth, not to wait for it
	for _, variable := range unit["Environment"] {
		cmd.Env = append(cmd.Env, strings.Replace(variable, "=/var/lib/posttrade", "="+state, 1))
	}
	cmd.Dir = state
	said, err := os.Create(filepath.Join(t.TempDir(), "log"))
	must.OK(t, err)
	defer said.Close()
	cmd.Stderr = said
	must.OK(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(readText(t, said.Name()))
		}
	})
	manager.await(t, "READY=1")
	manager.await(t, "WATCHDOG=1")
	if code, out, errs := apptest.Run("health", "--data.dir="+state); code != 0 {
		t.Errorf("health: %d %s %s", code, out, errs)
	}
	must.OK(t, cmd.Process.Signal(syscall.SIGTERM))
	manager.await(t, "STOPPING=1")
	if err := cmd.Wait(); err != nil {
		t.Errorf("the end: %v\n%s", err, readText(t, said.Name()))
	}
	err = filepath.WalkDir(state, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 && info.Mode().Type() != os.ModeSocket {
			t.Errorf("%s is open to others: %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	var line map[string]any
	text := readText(t, said.Name())
	first, _, _ := strings.Cut(text, "\n")
	if json.Unmarshal([]byte(first), &line) != nil {
		t.Errorf("the unit's log is not JSON: %s", first)
	}
}

// atMost is a number of files that this test may open: the unit's, or the limit of this machine.
func atMost(t *testing.T, files string) string {
	t.Helper()
	var limit syscall.Rlimit
	n, err := strconv.ParseUint(files, 10, 64)
	if err == nil {
		err = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
	must.OK(t, err)
	return strconv.FormatUint(min(n, limit.Max), 10)
}

// TestTheConsolesBoundsAreThoseOfTheRules: a tile of the console turns red where its alert begins.
func TestTheConsolesBoundsAreThoseOfTheRules(t *testing.T) {
	rules := map[string]string{}
	bound := regexp.MustCompile(`> ([0-9.e]+)$`)
	var expression string
	for _, line := range strings.Split(readText(t, rulesFile), "\n") {
		line = strings.TrimSpace(line)
		if m := bound.FindStringSubmatch(line); m != nil {
			expression = m[1]
		}
		if tile, ok := strings.CutPrefix(line, "console: "); ok {
			rules[tile] = expression
		}
	}
	shown := map[string]string{}
	tiles := regexp.MustCompile(`(?m)^  '?([A-Z][A-Za-z ]*?)'?: ([0-9_.e]+),$`)
	for _, m := range tiles.FindAllStringSubmatch(
		readText(t, "../../httpapi/console/assets/bounds.js"), -1) {
		shown[m[1]] = strings.ReplaceAll(m[2], "_", "")
	}
	if len(rules) < 8 || len(rules) != len(shown) {
		t.Errorf("the rules have %v, the console has %v", rules, shown)
	}
	for tile, want := range rules {
		if shown[tile] != want {
			t.Errorf("%s: red above %s in the console, the alert begins above %s", tile, shown[tile], want)
		}
	}
	// A request gets 503 where less of the ring is free than its kind leaves free.
	const most = 1 - 1.0/desk.SpareOfRequests
	if at := must.Get(strconv.ParseFloat(rules["Input ring"], 64))(t); at > most-0.1 {
		t.Errorf("the alert on the input ring begins at %v of it, requests are refused at %v", at, most)
	}
}
