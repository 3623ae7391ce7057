package installation

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"posttrade/sidecars/control"
	"posttrade/sidecars/feeds"
)

// TestSnapshotIsNeverCut fetches a snapshot of the largest size that can be read, and one that is a
// byte longer: the only answer to that is that it is too long.
func TestSnapshotIsNeverCut(t *testing.T) {
	snapshot := accountsAt(1, 9, account(7, true, 9))
	body := snapshot.AppendJSON(nil)
	body = append(body, bytes.Repeat([]byte{' '}, feeds.MaxSnapshotBytes-len(body))...)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(body)
	}))
	defer service.Close()
	room := func(s control.Source) int {
		return map[control.Source]int{control.Account: 400_000, control.Security: 1}[s]
	}
	f := feeds.NewSnapshotFetcher(nil, room, func() (string, error) { return "", nil })
	at := service.Listener.Addr().String()
	if got, err := f.Fetch(t.Context(), control.Account, at); err != nil || len(got.Records) != 1 {
		t.Errorf("%d records, %v; want one", len(got.Records), err)
	}
	body = append(body, ' ')
	_, err := f.Fetch(t.Context(), control.Account, at)
	want := fmt.Sprintf(
		"more than the %d bytes that can be read, although risk.max-accounts is 400000",
		feeds.MaxSnapshotBytes)
	if !errors.Is(err, feeds.ErrSnapshotSize) || errors.Is(err, control.ErrMalformed) ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %v with %q", err, feeds.ErrSnapshotSize, want)
	}
}
