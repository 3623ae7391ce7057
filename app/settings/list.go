package settings

import (
	"math"
	"strconv"
	"time"

	"posttrade/httpapi"
	"posttrade/journal"
	"posttrade/journal/quorum"
	"posttrade/matcher"
	"posttrade/matcher/session"
)

// Setting is one line of the configuration. Its dotted name is the same in a file and on the
// command line. In the environment it has capitals and underscores.
//
// The list is the only place that knows a setting: help, the environment's names, the
// configuration's listing and the checks of spelling are derived from it.
type Setting struct {
	// Lower case, words joined by dots and hyphens. A number of milliseconds ends in -ms.
	Name string
	// The text that Read begins with; it must be one that Kind allows. It comes from the room that has
	// the same default, if this package may import that room.
	Default string
	Kind    kind
	// What an empty value stands for; shown in brackets. "" when the kind allows no empty value, or
	// when it needs no explanation.
	Empty string
	// A line for `posttrade help` and `posttrade config`, without a full stop.
	Help string
}

// maxCurrency is the largest amount of money that fits an int64 x 1e6.
//
// Prices and amounts are int64 in millionths of a currency unit.
const maxCurrency = math.MaxInt64 / 1_000_000

// List is the one flat list of all settings, in the order in which `posttrade config` shows it.
//
// The order is by subject. A rename would break configurations, so a name stays.
var List = []Setting{
	{"profile", "dev", oneOf("dev", "production"), "", "production refuses unsafe settings by name"},
	{"data.dir", "./data", required(text), "", "where the journal, secrets and ports.json live"},

	// The listeners. The defaults are loopback addresses: a new installation is not reachable from
	// other machines. The file data.dir/ports.json has the addresses of a running server.
	{"order-matcher.listen", "127.0.0.1:18110", address, "",
		"address of the order-matcher, port 0 = any free port"},
	{"trade-processor.listen", "127.0.0.1:18091", address, "", "address of the trade-processor"},
	{"account-service.listen", "127.0.0.1:18088", address, "", "address of the account-service"},
	{"reference-data.listen", "127.0.0.1:18085", address, "", "address of the reference-data service"},
	{"admin.listen", "127.0.0.1:18111", address, "",
		"address of metrics, health and profiles; loopback unless admin.token-guard"},
	{"console.listen", "127.0.0.1:18100", listener, "no console",
		"address of the web console; a default that is taken is a warning"},
	{"console.hosts", "", hostNames, "localhost, addresses, names of http.tls-cert",
		"further host names under which browsers reach the console"},
	{"admin.token-guard", "false", boolean, "", "ask for an admin token on the admin listener"},
	{"admin.tls-cert", "", text, "no TLS",
		"certificate chain (PEM) of the admin listener; production needs one beyond loopback"},
	{"admin.tls-key", "", text, "no TLS", "private key (PEM) of admin.tls-cert"},
	{"log.format", "text", oneOf("text", "json"), "", "form of the log on standard error"},
	{"log.level", "info", oneOf("debug", "info", "warn", "error"), "",
		"least level that is logged; SIGHUP reads it again"},
	{"log.access", "false", boolean, "",
		"log one line a request to the services: method, route, status, duration, subject"},
	{"admin.open-health", "true", boolean, "",
		"under the guard, answer /readyz without a token too, then without details"},
	{"order-matcher.path-prefix", "", pathPrefix, "none",
		"routing prefix that the order-matcher strips, such as /matcher"},
	{"http.max-inflight", strconv.Itoa(httpapi.DefaultMaxInflight), whole(1, 65536), "",
		"requests in work at once, 429 beyond"},
	{"http.max-body-memory", "256MiB", bytesOf(httpapi.MinBodyMemory, 1<<50), "",
		"memory for request bodies over 4 KiB and what is made of them (8 times their length), a half " +
			"of it for those without a valid token; 503 BUSY beyond"},
	{"feed.max-clients", "256", whole(1, 65536), "",
		"readers of GET /feed at once, 503 BUSY beyond"},
	{"http.behind-proxy", "false", boolean, "", "a proxy in front ends TLS"},
	{"http.tls-cert", "", text, "no TLS", "certificate chain (PEM) of the service listeners"},
	{"http.tls-key", "", text, "no TLS", "private key (PEM) of http.tls-cert"},

	// The journal, the transparency log and the snapshots: what a start finds again. The retention of
	// the journal is not a setting: nothing is deleted, only moved out by a command.
	{"journal.durability", "fsync", oneOf("fsync", "os", "quorum"), "",
		"what a 2xx promises: on stable storage, handed to the operating system; a cluster's is quorum"},
	{"journal.flush-interval", journal.DefaultFlushInterval.String(),
		duration(time.Millisecond, 10*time.Second), "",
		"in mode os: what a power cut may remove, at most; no answers go while a sync takes longer"},
	{"journal.reserve-bytes", mebibytes(journal.DefaultReserveBytes), bytesOf(0, 1<<50), "",
		"free disk space below which orders are refused; 0 refuses none"},
	{"accept-older-journal", "false", boolean, "",
		"start although database, TCA files or extracts know more than the journal: what only " +
			"they know is given up"},
	{"journal.archive-dir", "", text, "none",
		"folder of what posttrade journal archive has moved out; without it that part of the history " +
			"cannot be read"},
	{"journal.scrub-interval", "24h", duration(0, 365*24*time.Hour), "",
		"time between two readings of the whole journal beside everything else, 0 = off"},
	{"evidence.interval", "1s", duration(0, time.Hour), "",
		"time between two signed heads of the transparency log, 0 = no log"},
	{"evidence.key", "", text, "data.dir/evidence/log.key", "file of the key that signs the log"},
	{"evidence.origin", "", logOrigin, "posttrade/ and the genesis hash",
		"name of the transparency log"},
	{"evidence.witnesses", "", text, "none", "file of witnesses, a line each: <vkey> <url>"},
	{"evidence.witness-quorum", "0", whole(0, 100), "",
		"witnesses that must cosign a head before it is published"},
	{"snapshot.interval-commands", "1000000", whole(0, math.MaxInt64), "",
		"commands between two snapshots, 0 = only when asked"},

	// The path of an order: the rings and their two threads, and the shared-memory sessions. The
	// ring's slots bound how many commands may wait, and with them the longest wait.
	{"ring.input-slots", "65536", powerOfTwo(1<<10, 1<<24), "",
		"commands that may wait for the matcher"},
	{"ring.output-slots", "131072", powerOfTwo(1<<10, 1<<24), "",
		"events that may wait for the recorder"},
	{"ring.idle", "adaptive", oneOf("spin", "yield", "adaptive", "park"), "",
		"how an idle stage waits"},
	{"matcher.cpu", "none", cpu, "", "processor the matcher's thread is pinned to"},
	{"recorder.cpu", "none", cpu, "", "processor the recorder's thread is pinned to"},
	{"session.socket", "", text, "off", "unix socket of the shared-memory sessions"},

	// The bounds of sessions. The clients of one machine share them.
	{"session.quota", strconv.Itoa(session.DefaultQuota), whole(1, session.MaxSlots), "",
		"commands of one session that may wait for their answers"},
	{"session.max-sessions", "64", whole(1, 100), "",
		"sessions for order entry, and as many that only read"},

	// What the post-trade services write to. Empty values begin an embedded database and an embedded
	// broker in data.dir, which a cluster cannot share.
	{"database.url", "", urlOf("postgres", "postgresql"), "SQLite in data.dir",
		"postgres://... of the post-trade tables"},
	{"nats.url", "", urlOf("nats", "tls"), "embedded server", "nats://... of the message broker"},

	// Tokens and what they are needed for. A secret that is not set is made once and kept in
	// data.dir.
	{"auth.jwt.secret", "", secretPair(32), "generated in data.dir",
		"HS256 secret of the access tokens, at least 32 bytes; behind a comma the former one, " +
			"still accepted"},
	{"auth.jwt.secret-file", "", text, "none",
		"file with the secret instead, and the former one on a second line"},
	{"auth.jwt.issuer", "", text, "not checked", "issuer a token must carry"},
	{"auth.jwt.leeway", "0s", duration(0, 30*time.Second), "",
		"clock difference tolerated in a token's times"},
	{"auth.dev-token.master-secret", "", secret(1), "generated in dev",
		"master secret of POST /auth/dev-token"},
	{"risk.entitlement.enforced", "false", boolean, "",
		"an order needs a token entitled to its account"},
	{"reference.write-auth.enforced", "false", boolean, "",
		"account and stock writes need an admin token, also where only loopback can reach them"},
	{"controlfeed.snapshot-auth", "false", boolean, "", "control snapshots need an admin token"},

	// The control feeds, through which accounts and securities come from the sources, and the
	// sidecars.
	{"risk.bootstrap.enabled", "true", boolean, "",
		"take accounts and securities from the control feeds; false = seeds only"},
	{"risk.bootstrap.buffer-capacity", "8192", whole(1, 1<<24), "",
		"deltas kept while a snapshot is fetched"},
	{"risk.feed.max-silence-ms", "10000", whole(100, dayMillis), "",
		"silence after which a source counts as disconnected"},
	{"audit.sequence-refusals", "true", boolean, "",
		"the gate's refusals are sequenced, so that the audit has them"},
	{"sidecars.enabled", "true", boolean, "", "run the post-trade services beside the engine"},

	// The universe of a new journal. An existing journal has its own, and these have no effect on it.
	{"risk.seed.accounts", "", AccountIDs, "all of seed.accounts",
		"accounts of a new journal, such as 1,2,22214; fixed at creation"},
	{"risk.seed.securities", "", tickers, "all of seed.securities",
		"tickers of a new journal, such as AAPL,MSFT; fixed at creation"},
	{"seed.accounts", "", text, "built in", "CSV file: id,displayName,enabled"},
	{"seed.securities", "", text, "built in", "CSV file: ticker,companyName,enabled,halted"},

	// Limits, which the genesis takes over and policy changes later, and capacities, which a later
	// start can raise and never lower. A limit that is set to another value than the one in force has
	// no effect; the start warns.
	{"risk.max-order-quantity", "1000000", whole(1, math.MaxInt32), "",
		"largest quantity of an order; until changed by policy"},
	{"risk.max-order-notional", "1000000000", money, "",
		"largest notional of an order at the most it can execute at, currency units; until changed " +
			"by policy"},
	{"risk.max-position-quantity", "1000000", whole(1, math.MaxInt32), "",
		"largest position, open orders included; until changed by policy"},
	{"risk.max-concentration-notional", "5000000000", money, "",
		"largest value of one security in an account, currency units; until changed by policy"},
	{"risk.credit-limit", "5000000000", money, "",
		"net cash an account may use, open orders included, currency units; until changed by policy"},
	{"risk.price.max-age-ms", "30000", whole(1, 365*dayMillis), "",
		"age at which a market price is stale; until changed by policy"},
	{"risk.price.collar-bps", "5000", whole(0, 1_000_000), "",
		"distance from the market price of a limit, and of what a market order executes at; 0 = no " +
			"collar; until changed by policy"},
	{"risk.idempotency.capacity", "65536", whole(1, 1<<26), "",
		"client order ids remembered, oldest out first; a larger one raises it at the next start"},
	{"risk.max-accounts", "4096", whole(1, 1<<22), "",
		"accounts the engine has room for; a larger one raises it at the next start"},
	{"risk.max-securities", "4096", whole(1, matcher.MaxSecurities), "",
		"securities the engine has room for; as above"},
	{"risk.max-contracts", "1048576", whole(1, 1<<26), "",
		"OTC contracts the engine has room for; as above"},
	{"risk.max-open-orders", "1048576", whole(1, 1<<24), "",
		"orders that may rest at once; as above"},
	{"risk.retained-orders", "65536", whole(1, 1<<26), "",
		"finished orders kept, oldest out first; as above"},

	// The post-trade services: the blotter's size, reconciliation, settlement, TCA and the outbox.
	{"recon.blotter.capacity", "500000", whole(1, 1<<28), "",
		"fills the blotter keeps, oldest out first"},
	{"recon.blotter.page-size", "1000", whole(1, 1000), "", "fills on a page of the blotter"},
	{"recon.poll.interval-ms", "1000", whole(1, dayMillis), "",
		"time between two reconciliation sweeps"},
	{"recon.grace-ms", "5000", whole(0, dayMillis), "",
		"time before an absent trade counts as missing"},
	{"recon.verify.interval-ms", "60000", whole(1, 365*dayMillis), "",
		"time in which every trade is compared again"},

	{"settlement.t-plus-days", "1", whole(0, 365), "", "business days from execution to settlement"},
	{"settlement.calendar", "US-SETTLEMENT", oneOf("US-SETTLEMENT", "XNYS", "TARGET", "weekdays"), "",
		"which days are business days"},
	{"settlement.timezone", "America/New_York", zone, "", "time zone of the execution date"},
	{"settlement.sweep.interval-ms", "5000", whole(1, dayMillis), "",
		"time between two settlement sweeps"},
	{"tca.window-minutes", "5", whole(1, 24*60), "", "length of the TWAP window"},
	{"outbox.poll-interval-ms", "250", whole(1, dayMillis), "",
		"time between two looks into the outbox"},

	// What helps to find out why a server is slow. Recorder and profiles cost time while they are on,
	// so they are off by default.
	{"flight.budget-ms", "0", whole(0, 60_000), "",
		"time in a stage above which the last second's trace is saved, 0 = off"},
	{"flight.dir", "", text, "data.dir/flight", "directory of those traces, the newest ten"},
	{"profile.contention", "false", boolean, "", "profile waits for mutexes and channels too"},

	// One of several members. The list is the same on every member; each is started with its own
	// number.
	{"cluster.member-id", "", memberID, "single", "this member's number in cluster.members"},
	{"cluster.members", "", members, "single", "1=host:raftport@host:httpport,2=..."},
	{"cluster.heal", "true", boolean, "",
		"a member whose journal is damaged starts again as a new disk and is sent the leader's"},
	{"cluster.heartbeat-ms", millis(quorum.DefaultHeartbeat), whole(10, 60_000), "",
		"silence after which a member doubts its leader"},
	{"cluster.log-reserve-bytes", mebibytes(quorum.DefaultLogReserve), bytesOf(4<<20, 1<<30), "",
		"disk that a file of the consensus log takes at once; less of it writes tables more often"},
	{"cluster.adopt", "false", boolean, "",
		"begin a new cluster with this member's journal, that of a single node or of a backup"},
	{"cluster.tls-cert", "", text, "loopback only",
		"certificate chain (PEM) of this member on the members' port"},
	{"cluster.tls-key", "", text, "loopback only", "private key (PEM) of cluster.tls-cert"},
	{"cluster.tls-ca", "", text, "loopback only", "certificate authority (PEM) of all members"},

	// The risk extracts: where they are written, and the reference data that they are joined with.
	{"extract.sink", "", text, "data.dir/extracts", "directory of the risk extracts"},
	{"extract.counterparties", "", text, "built in",
		"CSV file: accountId,counterpartyId,nettingSetId,currency"},
	{"extract.instruments", "", text, "built in", "CSV file of instrument terms"},
}

// dayMillis is the number of milliseconds in a day, an upper bound of intervals.
const dayMillis = 24 * 60 * 60 * 1000

// millis is the text of a default that its room states as a duration.
func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// mebibytes is the text of a default that its room states in bytes.
func mebibytes(n int64) string { return strconv.FormatInt(n>>20, 10) + "MiB" }

// Masked returns a value in a form that may be shown: secrets as stars, what is secret in a URL as
// xxxxx. A value without a secret is returned as it is.
func (s *Setting) Masked(value string) string {
	switch {
	case value == "":
		return ""
	case s.Kind.secret:
		return "********"
	case s.Kind.url:
		return maskedURLs(value)
	}
	return value
}
