package httpapi

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"posttrade/journal/evidence"
)

// fakeEvidence is a log with one head. Its trade 1 is account 1's, sequence 9 an operator's.
type fakeEvidence struct {
	mu   sync.Mutex
	note []byte
	fail error
}

func (f *fakeEvidence) Checkpoint() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.note
}

func (f *fakeEvidence) set(note []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note = note
}

func (f *fakeEvidence) MemberTree(size uint64) (evidence.MemberTree, error) {
	if f.note == nil {
		return evidence.MemberTree{}, evidence.ErrNotYet
	}
	return evidence.MemberTree{Size: min(size, 3), Root: "root",
		Snapshots: []evidence.MemberSnapshot{}}, nil
}

func (f *fakeEvidence) Tile(path string) ([]byte, bool, error) {
	if path == "tile/0/009" {
		return nil, false, context.Canceled
	}
	if path != "tile/0/x001/234.p/56" {
		return nil, false, fmt.Errorf("%s: %w", path, evidence.ErrNoTile)
	}
	return []byte("hashes"), false, nil
}

func (f *fakeEvidence) Find(_ context.Context, w evidence.Wanted) (evidence.Place, error) {
	switch {
	case w.TradeSeq == 1, w.Order == 7, w.Contract == "SW-3":
		return evidence.Place{InputSeq: 5, AccountID: 1, Owned: true}, nil
	case w.InputSeq == 9:
		return evidence.Place{InputSeq: 9}, nil
	case w.InputSeq == 10:
		return evidence.Place{InputSeq: 10, Act: true}, nil
	}
	return evidence.Place{}, evidence.ErrUnknown
}

func (f *fakeEvidence) Proof(context.Context, evidence.Place) ([]byte, error) {
	return []byte(`{"version":1,"origin":"o","kind":"fill","id":"trd-1","inputSeq":5,"record":"",` +
		`"salt":"","recordIndex":0,"recordPath":[],"leafIndex":1,"treeSize":1,"path":[],` +
		`"checkpoint":"","decoded":{}}` + "\n"), f.fail
}

// withLog puts a log behind an edge that enforces entitlements.
func withLog(f *fakeEvidence) func(r *rig) {
	return func(r *rig) { r.serve(func(d *Deps) { d.Evidence, d.Enforced = f, true }) }
}

// openEvidenceRows: where entitlement is not enforced a proof of an account's record needs no
// token, and one of an operator's act needs an admin's all the same.
func openEvidenceRows() []row {
	return []row{
		{"GET /evidence/proof?tradeId=trd-1", "", "", 200, ""},
		{"GET /evidence/proof?inputSeq=9", "", "", 200, ""},
		{"GET /evidence/proof?inputSeq=10", "", "", 401, CodeUnauthorized},
		{"GET /evidence/proof?inputSeq=10", "", "one", 403, CodeAdminRequired},
		{"GET /evidence/proof?inputSeq=10", "", "admin", 200, ""},
	}
}

// evidenceRows: heads and tiles need no token, a proof is for callers that may see its account.
func evidenceRows() []row {
	return []row{
		{"GET /log/checkpoint", "", "", 200, ""},
		{"GET /log/member", "", "", 200, ""},
		{"GET /log/member?size=2", "", "", 200, ""},
		{"GET /log/member?size=-1", "", "", 400, CodeBadRequest},
		{"GET /log/tile/0/x001/234.p/56", "", "", 200, ""},
		{"GET /log/tile/0/000", "", "", 404, CodeNotFound},
		{"GET /log/tile/0/009", "", "", 503, CodeStopping},
		{"GET /log/tile/log.key", "", "", 404, CodeNotFound},
		{"GET /log/tile/../log.key", "", "", 400, CodeBadRequest},
		{"GET /log/log.key", "", "", 404, CodeNotFound},
		{"POST /log/checkpoint", "", "", 405, CodeMethodNotAllowed},
		{"GET /evidence/proof?tradeId=trd-1", "", "", 401, CodeUnauthorized},
		{"GET /evidence/proof?tradeId=trd-1", "", "one", 200, ""},
		{"GET /evidence/proof?orderId=ord-7", "", "one", 200, ""},
		{"GET /evidence/proof?contractId=SW-3", "", "one", 200, ""},
		{"GET /evidence/proof?tradeId=trd-1", "", "two", 403, CodeNotEntitled},
		{"GET /evidence/proof?tradeId=trd-1", "", "admin", 200, ""},
		{"GET /evidence/proof?inputSeq=9", "", "one", 403, CodeNotEntitled},
		{"GET /evidence/proof?inputSeq=9", "", "admin", 200, ""},
		{"GET /evidence/proof?inputSeq=10", "", "one", 403, CodeAdminRequired},
		{"GET /evidence/proof?inputSeq=8", "", "admin", 404, CodeNotFound},
		{"GET /evidence/proof?inputSeq=0", "", "admin", 400, CodeBadRequest},
		{"GET /evidence/proof?tradeId=1", "", "admin", 400, CodeBadRequest},
		{"GET /evidence/proof", "", "admin", 400, CodeBadRequest},
		{"GET /evidence/proof?inputSeq=9&tradeId=trd-1", "", "admin", 400, CodeBadRequest},
		{"GET /evidence/proof?seq=9", "", "admin", 400, CodeBadRequest},
	}
}

func TestWhatNeverChangesMayBeCached(t *testing.T) {
	r := newRig(t)
	withLog(&fakeEvidence{note: []byte("a note\n")})(r)
	for path, want := range map[string][2]string{
		"/log/checkpoint":           {"a note\n", cacheNever},
		"/log/tile/0/x001/234.p/56": {"hashes", cacheForever},
	} {
		a := r.get(path, "").want(t, 200, "")
		if string(a.body) != want[0] || a.header.Get("Cache-Control") != want[1] {
			t.Errorf("%s: %v %s", path, a.header, a.body)
		}
	}
}
