package settings

import (
	"slices"
	"strings"
)

// envPrefix begins the environment variable of every setting. testPrefix begins those that this
// repository's own tests use.
//
// misspelt lets the names of tests pass, so that a test run with them set can start a server.
const (
	envPrefix  = "POSTTRADE_"
	testPrefix = envPrefix + "TEST_"
)

// bareNames are the settings that are also read from a variable without the prefix, as in builds
// before the prefix. The list never grows: a new setting has only the variable with the prefix.
//
// A variable without the prefix that is not in the list is some other program's and is ignored.
var bareNames = []string{
	"profile", "data.dir", "order-matcher.listen", "trade-processor.listen", "account-service.listen",
	"reference-data.listen", "admin.listen", "order-matcher.path-prefix", "journal.durability",
	"journal.flush-interval", "journal.reserve-bytes", "snapshot.interval-commands",
	"ring.input-slots", "ring.output-slots", "ring.idle", "matcher.cpu", "recorder.cpu",
	"session.socket", "database.url", "nats.url", "auth.jwt.secret", "auth.jwt.issuer",
	"auth.jwt.leeway", "auth.dev-token.master-secret", "risk.entitlement.enforced",
	"reference.write-auth.enforced", "controlfeed.snapshot-auth", "risk.bootstrap.enabled",
	"risk.bootstrap.buffer-capacity", "risk.feed.max-silence-ms", "audit.sequence-refusals",
	"sidecars.enabled", "http.max-inflight", "http.behind-proxy", "risk.seed.accounts",
	"risk.seed.securities", "seed.accounts", "seed.securities", "risk.max-order-quantity",
	"risk.max-order-notional", "risk.max-position-quantity", "risk.max-concentration-notional",
	"risk.credit-limit", "risk.price.max-age-ms", "risk.price.collar-bps",
	"risk.idempotency.capacity", "risk.max-accounts", "risk.max-securities", "risk.max-contracts",
	"recon.blotter.capacity", "recon.blotter.page-size", "recon.poll.interval-ms", "recon.grace-ms",
	"settlement.t-plus-days", "settlement.calendar", "settlement.timezone",
	"settlement.sweep.interval-ms", "tca.window-minutes", "outbox.poll-interval-ms",
	"cluster.member-id", "cluster.members", "extract.sink", "extract.counterparties",
	"extract.instruments",
}

// EnvName is the environment variable of a setting.
//
// journal.flush-interval is POSTTRADE_JOURNAL_FLUSH_INTERVAL: dots and hyphens become underscores.
func EnvName(name string) string { return envPrefix + bareEnvName(name) }

// bareEnvName is the variable of a setting without the prefix.
//
// No two settings may have the same variable: a name must not differ from another only in a dot
// against a hyphen.
func bareEnvName(name string) string {
	return strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(name))
}

// readEnviron takes the variables of settings and ignores all others. An empty one counts as not
// set. A variable with the prefix wins over the one without; a variable with the prefix that is no
// setting's is an error, because it can only be a mistake.
//
// environ has entries NAME=value, as os.Environ gives them. The two maps are taken one after the
// other, so that the order of the entries does not matter.
func (c *Config) readEnviron(environ []string) error {
	bare := make(map[string]string, len(bareNames))
	for _, name := range bareNames {
		bare[bareEnvName(name)] = name
	}
	prefixed := make(map[string]string, len(List))
	for i := range List {
		prefixed[EnvName(List[i].Name)] = List[i].Name
	}
	for _, byName := range []map[string]string{bare, prefixed} {
		for _, entry := range environ {
			variable, value, _ := strings.Cut(entry, "=")
			name, ours := byName[variable]
			if !ours || value == "" {
				continue
			}
			if err := c.set(name, value, "environment "+variable); err != nil {
				return err
			}
		}
	}
	return misspelt(environ, prefixed)
}

// misspelt refuses a variable with the prefix that is no setting's.
//
// The message names the closest setting. The names are sorted, so that it is the same each time.
func misspelt(environ []string, prefixed map[string]string) error {
	for _, entry := range environ {
		variable, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(variable, envPrefix) || strings.HasPrefix(variable, testPrefix) {
			continue
		}
		if _, ours := prefixed[variable]; ours {
			continue
		}
		known := make([]string, 0, len(prefixed))
		for v := range prefixed {
			known = append(known, v)
		}
		slices.Sort(known)
		return Usagef("unknown setting in the environment: %s%s", Printable(variable),
			DidYouMean(variable, known))
	}
	return nil
}
