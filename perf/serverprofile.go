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
// into the run's folder for profiles. The caller starts the load and then waits for the result,
// which comes once. Without a folder, or from the bare server, which has no admin listener, it is
// nil at once.
//
// The file is <phase>.prof with '-' for '/'. A later round of the phase overwrites it. The server
// takes whole seconds, at least one, so with a shorter load the profile has idle time in it.
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

// fetch writes the answer of an address into a file. Another status than 200 is an error with the
// first line of the answer, and no file.
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
