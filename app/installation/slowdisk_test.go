package installation

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"posttrade/app/apptest"
	"posttrade/httpapi"
	"posttrade/journal"
	"posttrade/journal/journaltest"
	"posttrade/ring/must"
)

// hangingDisk blocks the syncs of the journal's logs while it is shut.
type hangingDisk struct {
	mu   sync.Mutex
	open chan struct{} // closed: syncs do not hang
}

func newHangingDisk() *hangingDisk {
	d := &hangingDisk{open: make(chan struct{})}
	close(d.open)
	return d
}

func (d *hangingDisk) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = make(chan struct{})
}

func (d *hangingDisk) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.open)
}

func (d *hangingDisk) under(o *journal.Options) {
	o.FS = journaltest.Disk(func(op journaltest.Op) error {
		if op.Sync && (strings.HasSuffix(op.Path, ".log") || strings.HasSuffix(op.Path, "/tail")) {
			d.mu.Lock()
			open := d.open
			d.mu.Unlock()
			<-open
		}
		return nil
	})
}

// readyPart reads a part of /readyz.
func readyPart(i *installed, name string) (status int, part httpapi.Part) {
	i.t.Helper()
	status, body := i.get("admin", "/readyz")
	var answer struct{ Parts []httpapi.Part }
	must.OK(i.t, json.Unmarshal(body, &answer))
	for _, p := range answer.Parts {
		if p.Name == name {
			part = p
		}
	}
	return status, part
}

// TestReadsDoNotWaitForASlowDisk lets a sync hang. /readyz names the disk, and reads of what is
// decided and not durable are answered with SLOW_DISK. An order is answered when the sync returns,
// in both modes.
func TestReadsDoNotWaitForASlowDisk(t *testing.T) {
	for _, mode := range []string{journal.DurabilityFsync, journal.DurabilityOS} {
		t.Run(mode, func(t *testing.T) {
			disk := newHangingDisk()
			i := installOn(t, disk.under, t.TempDir(),
				"journal.durability", mode, "sidecars.enabled", "false")
			status, body := requested(i, i.token, "POST", "order-matcher", "/orders", anyOrder)
			if status != http.StatusCreated {
				t.Fatalf("%d %s", status, body)
			}
			if status, part := readyPart(i, "disk of the journal"); status != http.StatusOK || !part.Ready {
				t.Errorf("before: %d %+v", status, part)
			}
			disk.shut()
			released := sync.OnceFunc(disk.release)
			defer released()
			// in mode os it takes some orders until one has to wait
			stop := during(t, func(ctx context.Context) {
				for ctx.Err() == nil {
					status, body := requested(i, i.token, "POST", "order-matcher", "/orders", anyOrder)
					if status != http.StatusCreated && status != http.StatusGatewayTimeout {
						t.Errorf("order: %d %s", status, body)
						return
					}
				}
			})
			apptest.Until(t, "the disk is named", func() (bool, any) {
				status, part := readyPart(i, "disk of the journal")
				return status == http.StatusServiceUnavailable && !part.Ready &&
					strings.Contains(part.Detail, i.Core.Journal.Dir()) &&
					strings.Contains(part.Detail, "is not synced"), part
			})
			apptest.Until(t, "something is decided and not durable", func() (bool, any) {
				return i.Core.Stage.Applied() > i.Core.Watermark.Durable(), i.Core.Watermark.Durable()
			})
			durable := i.Core.Watermark.Durable()
			var reads sync.WaitGroup
			paths := []string{"/orders?status=all", "/positions", "/contracts", "/risk/control/snapshot"}
			if mode == journal.DurabilityFsync { // in mode os the book is that of the answered orders
				paths = append(paths, "/book/AAPL")
			}
			for _, path := range paths {
				reads.Go(func() { wantSlowDisk(i, path) })
			}
			reads.Wait()
			if at := i.Core.Watermark.Durable(); at != durable {
				t.Errorf("answered up to %d, want %d", at, durable)
			}
			released()
			stop()
			apptest.Until(t, "ready again", func() (bool, any) {
				status, part := readyPart(i, "disk of the journal")
				return status == http.StatusOK && part.Ready, part
			})
		})
	}
}

func wantSlowDisk(i *installed, path string) {
	request, err := http.NewRequest("GET", "http://"+i.at("order-matcher")+path, nil)
	if err != nil {
		i.t.Error(err)
		return
	}
	request.Header.Set("Authorization", "Bearer "+i.token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		i.t.Error(err)
		return
	}
	defer answer.Body.Close()
	var problem struct{ Code string }
	err = json.NewDecoder(answer.Body).Decode(&problem)
	again := answer.Header.Get("Retry-After")
	if err != nil || answer.StatusCode != http.StatusServiceUnavailable ||
		problem.Code != "SLOW_DISK" || again == "" {
		i.t.Errorf("%s: %d %+v, retry after %q, %v", path, answer.StatusCode, problem, again, err)
	}
}
