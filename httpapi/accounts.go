package httpapi

import (
	"context"
	"errors"
	"log/slog"

	"posttrade/matcher/gate"
	"posttrade/matcher/strictjson"
	"posttrade/sidecars/accounts"
	"posttrade/sidecars/control"
)

// Accounts are the accounts behind the account-service; *accounts.Accounts is one.
type Accounts interface {
	// List returns every account, by id.
	List(ctx context.Context) ([]accounts.Account, error)
	// Get returns an account, false for none.
	Get(ctx context.Context, id uint32) (accounts.Account, bool, error)
	// Upsert makes or changes an account; accounts.ErrAccount, control.ErrCapacity and
	// control.ErrReason change nothing.
	Upsert(ctx context.Context, a accounts.Account) (version uint64, err error)
	// Snapshot returns all accounts as of one moment.
	Snapshot(ctx context.Context) (control.Snapshot, error)
}

// AccountDeps is everything that the account-service's handlers use. The installation fills it.
//
// It is constant after NewAccountService.
type AccountDeps struct {
	Accounts     Accounts
	Verifier     *gate.Verifier
	WriteAuth    bool // writes need an admin token
	SnapshotAuth bool // controlfeed.snapshot-auth: the control snapshot needs one

	// What /health shows. Applied, Durable and Projected are input sequences.
	State                       func() string // nil: always ok
	Applied, Durable, Projected func() uint64
	Durability                  string  // fsync, os or quorum: X-Durability
	Cluster                     Cluster // nil: this is the only member

	MaxInflight int          // http.max-inflight; 0: DefaultMaxInflight
	Logger      *slog.Logger // nil: none
}

// AccountService is the account-service's HTTP edge.
//
// In a cluster it runs on the leader only. No read but that of the control snapshot ever needs a
// token.
type AccountService struct {
	source
	accounts Accounts
}

// NewAccountService builds the edge; Serve starts it.
//
// A value of Accounts that also has Version(ctx) gives answers their X-As-Of-Version.
func NewAccountService(d AccountDeps) *AccountService {
	s := &AccountService{accounts: d.Accounts}
	s.source = newSource("account-service", sourceDeps{
		verifier: d.Verifier, writeAuth: d.WriteAuth, snapshotAuth: d.SnapshotAuth,
		state: d.State, applied: d.Applied, durable: d.Durable, projected: d.Projected,
		durability: d.Durability, cluster: d.Cluster, maxInflight: d.MaxInflight, log: d.Logger,
		document: openAPIAccountService, find: accountRouteOf, snapshot: d.Accounts.Snapshot,
		version: versionOf(d.Accounts),
	}, s.answer)
	return s
}

// accountRouteOf finds the endpoint of a plain path and the id in it. The path of the list ends
// with a slash; the path without the slash is the same endpoint.
func accountRouteOf(path []byte) (r route, id []byte) {
	switch string(path) {
	case "/account/", "/account":
		return routeAccounts, nil
	case "/account/control-snapshot":
		return routeAccountSnapshot, nil
	case "/health":
		return routeHealth, nil
	case "/openapi.json":
		return routeOpenAPI, nil
	}
	if rest, ok := cutPrefix(path, "/account/"); ok {
		if id, tail := cutSegment(rest); len(tail) == 0 {
			return routeAccount, id
		}
	}
	return routeNone, nil
}

// answer runs the endpoint of a request.
//
// newSource calls it, when path and method are right and a read has its version.
func (s *AccountService) answer(e *sourceRequest, r route, id []byte, method methods) problem {
	switch {
	case r == routeAccounts && method == methodGet:
		return s.list(e)
	case r == routeAccounts:
		return s.upsert(e)
	case r == routeAccount:
		return s.show(e, id)
	case r == routeAccountSnapshot:
		return e.showSnapshot(&s.source)
	case r == routeOpenAPI:
		return e.showDocument(s.deps.document)
	default:
		return e.showSourceHealth(&s.source)
	}
}

// list is GET /account/.
//
// It shows every account in one answer, without pages.
func (s *AccountService) list(e *sourceRequest) problem {
	return showList(e, &s.source, s.accounts.List, appendAccount)
}

// show is GET /account/{accountId}.
func (s *AccountService) show(e *sourceRequest, text []byte) problem {
	if p := e.noParameters(); p.status != 0 {
		return p
	}
	id, ok := number(text, 1, 1<<32-1)
	if !ok {
		return problemAccountID
	}
	ctx, cancel := quick()
	defer cancel()
	account, found, err := s.accounts.Get(ctx, uint32(id))
	switch {
	case err != nil:
		return s.failed(err)
	case !found:
		return problemAccount
	}
	return e.send(200, appendAccount(e.begin(), &account))
}

// upsert is POST /account/ and PUT /account/. Both do the same.
//
// 200 for a new account too. The change and its outbox row are one transaction; the engine learns
// of it from the feed, a moment later. An operator's act is on record when a flag gets another
// value.
func (s *AccountService) upsert(e *sourceRequest) problem {
	if p := e.writing(&s.source); p.status != 0 {
		return p
	}
	account := e.body.account()
	if p := e.bodyRead(); p.status != 0 {
		return p
	}
	var p problem
	if account.By, p = e.operator(); p.status != 0 {
		return p
	}
	ctx, cancel := quick()
	defer cancel()
	_, err := s.accounts.Upsert(ctx, account)
	switch {
	case errors.Is(err, accounts.ErrAccount):
		e.body.field = ""
		return e.body.bodyProblem(accounts.ErrAccount, -1)
	case errors.Is(err, control.ErrCapacity):
		return problemCapacity("account")
	case errors.Is(err, control.ErrReason):
		return problemFlagReason
	case err != nil:
		return s.changed(err)
	}
	return e.send(200, appendAccount(e.begin(), &account))
}

// account reads the body of an upsert. A new account is enabled unless the body says otherwise. An
// existing account keeps its state unless the body has the member enabled.
func (d *decoder) account() accounts.Account {
	a := accounts.Account{Enabled: true, EnabledUnset: true}
	var id, name bool
	for key := range d.members {
		switch string(key) {
		case "id":
			a.ID, id = d.accountKey(), true
		case "displayName":
			a.DisplayName, name = d.name("displayName"), true
		case "enabled":
			a.Enabled, a.EnabledUnset = d.flag("enabled"), false
		default:
			d.unknown(key)
		}
	}
	d.require("id", id)
	d.require("displayName", name)
	return a
}

// accountKey reads the id of an account. 0 is not a valid id.
func (d *decoder) accountKey() uint32 {
	d.field = "id"
	n := d.json.Int()
	if d.json.Err() == nil && (n < 1 || n > 1<<32-1) {
		d.fail(strictjson.ErrRange)
	}
	return uint32(n)
}

// appendAccount appends the document of an account.
//
// Whether it is enabled is not in it: what is in force is the engine's to show.
func appendAccount(b []byte, a *accounts.Account) []byte {
	b = append(appendAccountID(b, a.ID), `,"displayName":`...)
	return append(appendString(b, a.DisplayName), '}')
}

// appendAccountID appends the beginning of the document of an account: what no source decides.
func appendAccountID(b []byte, id uint32) []byte {
	return appendUint(append(b, `{"id":`...), uint64(id))
}
