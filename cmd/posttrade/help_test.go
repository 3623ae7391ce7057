package main

import (
	"os/exec"
	"strings"
	"testing"

	"posttrade/app/settings"
)

// Every command has an example in its help, and the example begins with its name. So has a word of
// a command with a help of its own. No flag has two defaults.
func TestEveryCommandHasAnExample(t *testing.T) {
	for _, c := range commands() {
		if examples[c.name] == "" {
			t.Errorf("%s: no example", c.name)
		}
	}
	for name, example := range examples {
		if !strings.HasPrefix(example, "posttrade "+name) {
			t.Errorf("%s: example %q", name, example)
		}
		var out, errs strings.Builder
		code := dispatch(commands(), append(strings.Fields(name), "-h"), &out, &errs)
		if code != settings.ExitOK || !strings.HasSuffix(out.String(), "example:\n  "+example+"\n") {
			t.Errorf("%s -h: %d %s%s", name, code, out.String(), errs.String())
		}
		for line := range strings.Lines(out.String()) {
			if strings.Count(line, "(default") > 1 {
				t.Errorf("%s -h: %q has two defaults", name, line)
			}
		}
	}
}

// An example is a command line that its command takes. A setting with a wrong value stands behind
// it, which is refused behind the arguments, so no example is carried out.
func TestExamplesAreTaken(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, example := range examples {
		line, _, _ := strings.Cut(example, " > ")
		args := strings.Fields(strings.ReplaceAll(line, "'", ""))[1:]
		var out, errs strings.Builder
		code := dispatch(commands(), append(args, "--ring.idle=wrong"), &out, &errs)
		if code != settings.ExitUsage || !strings.Contains(errs.String(), "ring.idle") {
			t.Errorf("%s: exit code %d: %s%s", name, code, out.String(), errs.String())
		}
	}
}

// The scripts have every command and setting, and bash reads and completes with its script.
func TestCompletion(t *testing.T) {
	for _, script := range []string{bashCompletion(), zshCompletion(), fishCompletion()} {
		for _, c := range commands() {
			if !strings.Contains(script, c.name) {
				t.Errorf("%.20s: no %s", script, c.name)
			}
		}
		for i := range settings.List {
			if !strings.Contains(script, settings.List[i].Name) {
				t.Errorf("%.20s: no %s", script, settings.List[i].Name)
			}
		}
	}
	complete := func(line, words, at string) string {
		cmd := exec.Command("bash", "-c", bashCompletion()+`
COMP_LINE=$1 COMP_POINT=${#1} COMP_CWORD=$3 COMP_WORDS=($2)
_posttrade
echo "${COMPREPLY[@]}"`, "bash", line, words, at)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("bash: %v\n%s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	for _, tt := range [][4]string{
		{"posttrade jo", "posttrade jo", "1", "journal"},
		{"posttrade journal ex", "posttrade journal ex", "2", "export"},
		{"posttrade evidence ", "posttrade evidence ", "2", "key proof verify export page"},
		{"posttrade perf ", "posttrade perf ", "2", "gate report sample verdicts"},
		{"posttrade recon ", "posttrade recon ", "2", "status breaks repair"},
		{"posttrade serve --journal.dur", "posttrade serve --journal.dur", "2", "--journal.durability="},
	} {
		if got := complete(tt[0], tt[1], tt[2]); got != tt[3] {
			t.Errorf("%s: %q, want %q", tt[0], got, tt[3])
		}
	}
}
