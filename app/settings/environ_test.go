package settings

import (
	"slices"
	"strings"
	"testing"
)

// Every setting has its variable with the prefix. Without the prefix only those of older builds
// are read, and the one with the prefix wins, in either order.
func TestVariablesOfSettings(t *testing.T) {
	for i := range List {
		s := &List[i]
		if s.Default == "" || s.Kind.secret {
			continue
		}
		c, err := Read(Sources{Environ: []string{EnvName(s.Name) + "=" + s.Default}})
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
		} else if want := "environment POSTTRADE_"; !strings.HasPrefix(c.Source(s.Name), want) {
			t.Errorf("%s comes from %s", s.Name, c.Source(s.Name))
		}
		c, err = Read(Sources{Environ: []string{bareEnvName(s.Name) + "=" + s.Default}})
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
		} else if bare := c.Source(s.Name) != "default"; bare != slices.Contains(bareNames, s.Name) {
			t.Errorf("%s without the prefix comes from %s", s.Name, c.Source(s.Name))
		}
	}
	for _, name := range bareNames {
		if Named(name) == nil {
			t.Errorf("%s is no setting", name)
		}
	}
	environ := []string{"POSTTRADE_TCA_WINDOW_MINUTES=20", "TCA_WINDOW_MINUTES=30",
		"POSTTRADE_TCA_WINDOW_MINUTES_=", "X=y"}
	environ[2] = "POSTTRADE_TEST_ANYTHING=1"
	for range 2 {
		c, err := Read(Sources{Environ: environ})
		if err != nil || c.Int("tca.window-minutes") != 20 {
			t.Errorf("%v: %v", environ, err)
		}
		slices.Reverse(environ)
	}
}

// A variable with the prefix that is no setting's stops the start, with the nearest name.
func TestMisspeltVariables(t *testing.T) {
	for environ, want := range map[string]string{
		"POSTTRADE_JOURNAL_DURABILTY=os": `"POSTTRADE_JOURNAL_DURABILTY"; did you mean ` +
			`POSTTRADE_JOURNAL_DURABILITY?`,
		"POSTTRADE_JOURNAL_DURABILTY=": `did you mean POSTTRADE_JOURNAL_DURABILITY?`,
		"POSTTRADE_=x":                 `"POSTTRADE_"`,
		"POSTTRADE_QQQQQQQQQQQQ=x":     `"POSTTRADE_QQQQQQQQQQQQ"`,
	} {
		_, err := Read(Sources{Environ: []string{environ}})
		wantUsage(t, err, want)
	}
	_, err := Read(Sources{Environ: []string{"POSTTRADE_TCA_WINDOW_MINUTES=x"}})
	wantUsage(t, err, "tca.window-minutes (environment POSTTRADE_TCA_WINDOW_MINUTES)")
	_, err = Read(Sources{Flags: []FlagValue{{Name: "journal.durabilty", Text: "os"}}})
	wantUsage(t, err, "did you mean journal.durability?")
}

func TestNearest(t *testing.T) {
	names := []string{"serve", "config", "token", "replay", "journal", "stop", "cluster"}
	for name, want := range map[string]string{
		"srve": "serve", "sevre": "serve", "jurnal": "journal", "clus": "cluster", "repaly": "replay",
		"": "", "x": "", "frobnicate": "", "stp": "stop", "serve": "serve",
		strings.Repeat("s", 1000): "",
	} {
		if got := nearest(name, names); got != want {
			t.Errorf("%.20s: %q, want %q", name, got, want)
		}
	}
}
