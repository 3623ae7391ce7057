package app_test

import "strings"

// rooms lists every package and the packages of this module that it imports. A package that is not
// in the list fails the test, so that a new package and a new import are deliberate decisions.
var rooms = map[string][]string{
	"ring":                   {},
	"ring/ringtest":          {},
	"ring/waittest":          {},
	"ring/scenariotest":      {},
	"ring/timing":            {},
	"matcher/strictjson":     {},
	"matcher":                {"ring"},
	"matcher/flow":           {},
	"matcher/gate":           {"matcher", "matcher/strictjson"},
	"matcher/desk":           {"ring", "matcher"},
	"journal":                {"ring/timing", "ring", "matcher", "matcher/strictjson"},
	"matcher/note":           {"matcher", "matcher/desk"},
	"blotter":                {"ring", "matcher"},
	"matcher/admission":      {"matcher", "matcher/gate", "matcher/desk", "blotter"},
	"matcher/session/wire":   {"ring", "matcher"},
	"matcher/session/client": {"ring", "matcher", "matcher/session/wire"},
	"matcher/session": {"ring", "matcher", "matcher/admission", "matcher/gate", "matcher/desk",
		"blotter", "matcher/session/wire"},
	"journal/acts":          {"matcher", "matcher/note", "matcher/strictjson", "journal"},
	"journal/audit":         {"matcher", "matcher/strictjson", "journal"},
	"journal/asof":          {"matcher", "journal", "blotter"},
	"journal/asof/asoftest": {"matcher", "journal"},
	"journal/whatif":        {"matcher", "matcher/strictjson", "journal/asof"},
	"journal/why": {"matcher", "matcher/strictjson", "journal", "journal/asof",
		"blotter"},
	"journal/quorum":               {"ring/timing", "ring", "matcher", "journal"},
	"journal/journaltest":          {},
	"journal/evidence/verify":      {"matcher/strictjson"},
	"journal/evidence/verify/wasm": {"journal/evidence/verify"},
	"journal/evidence/bundle": {"matcher", "matcher/strictjson", "journal", "journal/audit",
		"journal/evidence", "journal/evidence/verify"},
	"journal/evidence/page":      {},
	"journal/evidence":           {"matcher", "journal", "journal/asof", "journal/evidence/verify"},
	"journal/backup":             {"journal"},
	"blotter/feed":               {"matcher", "journal", "blotter"},
	"sidecars/export":            {"matcher", "matcher/strictjson", "blotter", "sidecars/store"},
	"sidecars/pace":              {},
	"sidecars/store":             {"matcher", "ring"},
	"sidecars/store/storetest":   {"sidecars/store"},
	"sidecars/broker":            {},
	"sidecars/broker/brokertest": {},
	"sidecars/projection":        {"matcher", "matcher/strictjson", "sidecars/pace", "sidecars/store"},
	"sidecars/settlement":        {"sidecars/pace", "sidecars/store"},
	"sidecars/recon":             {"matcher", "sidecars/pace", "sidecars/store"},
	"sidecars/tca":               {"matcher", "matcher/strictjson", "sidecars/pace", "sidecars/store"},
	"sidecars/control":           {"matcher/strictjson"},
	"sidecars/source":            {"sidecars/control", "sidecars/store"},
	"sidecars/accounts":          {"sidecars/control", "sidecars/source", "sidecars/store"},
	"sidecars/securities":        {"sidecars/control", "sidecars/source", "sidecars/store"},
	"sidecars/outbox":            {"sidecars/control", "sidecars/pace", "sidecars/store"},
	"sidecars/bootstrap":         {"sidecars/control"},
	"sidecars/riskextract": {"matcher", "matcher/strictjson", "ring", "sidecars/pace",
		"sidecars/store"},
	"httpapi/console":         {"matcher/gate"},
	"httpapi/console/browser": {},
	"httpapi/client":          {"matcher", "matcher/strictjson"},
	"httpapi": {"ring/timing", "matcher", "matcher/strictjson", "matcher/gate", "matcher/desk",
		"matcher/admission", "matcher/note", "blotter", "journal", "journal/acts", "journal/audit",
		"journal/asof", "journal/evidence", "journal/why", "blotter/feed", "sidecars/export",
		"sidecars/store", "sidecars/recon", "sidecars/tca", "sidecars/control", "sidecars/accounts",
		"sidecars/securities"},
	"perf/orderflow": {"matcher"},
	"perf/load":      {"app/latency", "ring"},
	"perf/regress":   {},
	"perf/report":    {"app/latency"},
	"perf/replay": {"matcher", "matcher/admission", "matcher/desk", "httpapi/client", "app/engine",
		"app/installation", "app/latency", "app/settings", "app/top", "perf/orderflow"},
	"perf": {"ring", "matcher", "matcher/strictjson", "matcher/gate", "matcher/desk", "matcher/flow",
		"matcher/session/client", "matcher/session/wire", "journal", "journal/asof", "journal/audit",
		"journal/backup", "journal/evidence", "journal/quorum", "journal/whatif", "blotter",
		"sidecars/bootstrap", "sidecars/control", "sidecars/feeds", "sidecars/outbox",
		"sidecars/projection", "sidecars/recon", "sidecars/riskextract", "sidecars/securities",
		"sidecars/source", "sidecars/store", "sidecars/tca", "httpapi", "app/engine", "app/installation",
		"app/latency", "app/settings", "perf/load", "perf/orderflow", "perf/regress", "perf/report"},
	"sidecars/feeds": {"matcher", "matcher/strictjson", "matcher/gate", "matcher/desk", "blotter",
		"sidecars/control", "sidecars/broker", "sidecars/outbox", "sidecars/bootstrap"},
	"sidecars/prices":   {"matcher", "matcher/strictjson", "matcher/gate", "matcher/desk"},
	"sidecars/bookings": {"sidecars/broker", "sidecars/projection"},
	"app/settings": {"matcher", "matcher/strictjson", "matcher/session", "journal", "journal/quorum",
		"sidecars/control", "httpapi"},
	"app/engine": {"ring", "matcher", "matcher/gate", "matcher/desk", "matcher/session", "journal",
		"journal/quorum", "journal/asof", "blotter", "blotter/feed"},
	"app/stats": {"ring/timing", "ring", "matcher/session", "matcher/session/wire", "journal",
		"httpapi"},
	"app/latency": {},
	"app/systemd": {},
	"app/backups": {"journal", "journal/backup", "sidecars/store"},
	"app/top":     {"matcher/session", "sidecars/control", "app/latency", "app/stats"},
	"app/flight":  {"journal", "app/settings", "app/stats"},
	"app/inspect": {"matcher", "matcher/strictjson", "journal", "journal/asof", "journal/why",
		"journal/whatif", "httpapi", "app/settings"},
	"app/watch":   {"httpapi/client"},
	"app/apptest": {"ring/waittest", "journal", "app/settings", "app/stats"},
	"app":         {},
	"app/installation": {"ring/timing", "ring", "matcher", "matcher/strictjson", "matcher/gate",
		"matcher/admission", "matcher/desk", "matcher/note", "matcher/session", "matcher/session/wire",
		"journal", "journal/acts", "journal/asof", "journal/audit", "journal/backup",
		"journal/evidence", "journal/evidence/page", "journal/quorum", "blotter", "blotter/feed",
		"sidecars/accounts", "sidecars/bookings", "sidecars/bootstrap", "sidecars/broker",
		"sidecars/control", "sidecars/feeds", "sidecars/outbox", "sidecars/prices",
		"sidecars/projection", "sidecars/recon", "sidecars/riskextract", "sidecars/securities",
		"sidecars/settlement", "sidecars/source", "sidecars/store", "sidecars/tca", "httpapi",
		"httpapi/console", "app/backups", "app/engine", "app/flight", "app/settings", "app/stats",
		"app/systemd"},
	"cmd/posttrade": {"matcher", "matcher/gate", "journal", "journal/asof", "journal/backup",
		"app/backups", "journal/evidence", "journal/evidence/bundle", "journal/evidence/page",
		"journal/evidence/verify", "journal/quorum", "sidecars/broker", "sidecars/control",
		"sidecars/feeds", "sidecars/riskextract", "sidecars/store", "httpapi/client",
		"app/engine", "app/inspect", "app/installation", "app/settings", "app/stats", "app/top",
		"app/watch", "perf", "perf/replay"},
}

// testRooms lists what the tests of a package import beside what the package may import.
var testRooms = map[string][]string{
	"app/engine":  {"ring/ringtest"},
	"app/inspect": {"journal/asof/asoftest"},
	"app/installation": {"app/apptest", "app/top", "httpapi/client", "journal/journaltest",
		"matcher/session/client", "ring/ringtest", "sidecars/broker/brokertest",
		"sidecars/store/storetest"},
	"app/stats":     {"matcher"},
	"app/top":       {"app/apptest", "journal"},
	"blotter":       {"journal", "ring/ringtest"},
	"cmd/posttrade": {"app/apptest"},
	"httpapi": {"httpapi/client", "journal/asof/asoftest", "ring", "ring/waittest",
		"sidecars/riskextract", "sidecars/settlement", "sidecars/source", "sidecars/store/storetest"},
	"httpapi/console":         {"ring/waittest"},
	"journal":                 {"ring/ringtest"},
	"journal/acts":            {"matcher/desk", "ring"},
	"journal/asof":            {"journal/asof/asoftest"},
	"journal/backup":          {"matcher"},
	"journal/evidence/verify": {"matcher"},
	"journal/whatif":          {"journal/asof/asoftest"},
	"journal/why":             {"journal/asof/asoftest", "journal/audit"},
	"matcher":                 {"matcher/flow", "ring/ringtest", "ring/scenariotest"},
	"matcher/session":         {"journal", "matcher/session/client"},
	"perf":                    {"app/apptest", "ring/waittest"},
	"perf/replay": {"app/apptest", "blotter", "httpapi", "matcher/gate", "matcher/session",
		"matcher/session/client", "matcher/session/wire", "matcher/strictjson", "ring/scenariotest"},
	"ring":              {"ring/ringtest"},
	"sidecars/accounts": {"sidecars/store/storetest"},
	"sidecars/broker":   {"sidecars/broker/brokertest"},
	"sidecars/outbox": {"sidecars/accounts", "sidecars/bootstrap", "sidecars/broker",
		"sidecars/broker/brokertest", "sidecars/source", "sidecars/store/storetest"},
	"sidecars/projection":  {"sidecars/store/storetest"},
	"sidecars/recon":       {"sidecars/settlement", "sidecars/store/storetest"},
	"sidecars/riskextract": {"ring/ringtest", "sidecars/store/storetest"},
	"sidecars/securities":  {"sidecars/store/storetest"},
	"sidecars/settlement":  {"matcher", "ring/scenariotest", "sidecars/store/storetest"},
	"sidecars/source":      {"sidecars/accounts", "sidecars/securities", "sidecars/store/storetest"},
	"sidecars/store":       {"ring/ringtest", "sidecars/store/storetest"},
	"sidecars/tca":         {"sidecars/store/storetest"},
}

// storeys is the order of the top-level folders. A package, and a test, may import what is on its
// own storey or below.
var storeys = map[string]int{
	"ring": 0, "matcher": 1, "journal": 2, "blotter": 2, "sidecars": 3, "httpapi": 4, "app": 5,
	"perf": 6, "cmd": 7,
}

// doors are the packages that stand above their folder's storey, with the folder on whose storey
// they are: they read the blotter's views. A session is a way in beside HTTP, and admission is what
// both ask.
var doors = map[string]string{"matcher/admission": "blotter", "matcher/session": "blotter"}

// storeyOf is the storey of a package.
func storeyOf(room string) (storey int, known bool) {
	folder, _, _ := strings.Cut(room, "/")
	if door, ok := doors[room]; ok {
		folder = door
	}
	storey, known = storeys[folder]
	return storey, known
}

// soleImporters names the one folder that may import each outside engine, so that its replacement
// changes one folder.
var soleImporters = map[string][]string{
	"github.com/cockroachdb/pebble": {"journal", "journal/quorum", "journal/journaltest"},
	"github.com/valyala/fasthttp":   {"httpapi"},
	"github.com/hashicorp/raft":     {"journal/quorum"},
	"github.com/nats-io":            {"sidecars/broker", "sidecars/broker/brokertest"},
	"database/sql":                  {"sidecars/store"},
	"zombiezen.com/go/sqlite":       {"sidecars/store"},
	"github.com/jackc/pgx":          {"sidecars/store"},
}

// hotBans are the packages that a file that opens with //perf:hot may not import.
var hotBans = []string{"fmt", "log", "log/slog", "time", "errors", "strings", "reflect", "bytes"}
