package perf

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// profile writes the CPU profile of the server under the phase's load, taken during the given time,
// into the run's folder for profiles. The caller starts the load and then waits for the result.
func (p *httpPhase) profile(r *Run, d time.Duration) <-chan error {
	done := make(chan error, 1)
	admin := p.server.ports["admin"]
	if r.o.Profiles == "" || admin == "" {
		done <- nil
		return done
	}
	go func() {
		name := filepath.Join(r.o.Profiles, strings.ReplaceAll(p.name, "/", "-")+".prof")
		err := fetch(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", admin,
			max(1, int(d.Seconds()))), name)
		if err != nil {
			err = fmt.Errorf("profile of the server: %w", err)
		}
		done <- err
	}()
	return done
}

// fetch writes the answer of an address into a file.
func fetch(address, name string) error {
	answer, err := http.Get(address)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %s", answer.StatusCode, firstOf(string(content)))
	}
	return os.WriteFile(name, content, 0o644)
}
