package installation

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
)

// renewed is the TLS configuration of listeners, whose certificate can be read again while they
// serve. A connection keeps the certificate that it began with.
//
// One goroutine at a time reads; every handshake loads current.
type renewed struct {
	load    func() (*tls.Config, error)
	current atomic.Pointer[tls.Config] // never changed, only replaced
}

// listenerTLS returns the configuration for listeners, which load reads, and how to read the
// certificate again; nil without TLS.
//
// serving keeps the first certificate for listeners, and asks for the current one at each
// handshake.
func listenerTLS(load func() (*tls.Config, error)) (*tls.Config, *renewed, error) {
	first, err := load()
	if first == nil || err != nil {
		return nil, nil, err
	}
	r := &renewed{load: load}
	r.current.Store(first)
	serving := first.Clone()
	serving.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return r.current.Load(), nil
	}
	return serving, r, nil
}

// read reads the certificate and its key again. After an error the ones before stay.
func (r *renewed) read() error {
	next, err := r.load()
	if err != nil {
		return err
	}
	r.current.Store(next)
	return nil
}

// reload reads again what can change while the server runs, and logs for each part whether it was
// read. A part that cannot be read stays whole; the others are read all the same. Every other
// setting needs a restart.
func (in *Installation) reload(log *slog.Logger) (failed error) {
	var parts []string
	secrets := "unchanged" // a credential of systemd is a copy of the start
	for _, p := range []struct {
		name  string
		there bool
		read  func() error
	}{
		{"http.tls-cert", in.listeners.renewed != nil, in.listeners.renewed.read},
		{"admin.tls-cert", in.listeners.adminRenewed != nil, in.listeners.adminRenewed.read},
		{"log.level", in.level != nil, in.readLogLevel},
		{"secrets", true, func() error {
			changed, err := in.readSecrets()
			if changed {
				secrets = "changed"
			}
			return err
		}},
	} {
		if !p.there {
			continue
		}
		if err := p.read(); err != nil {
			log.Error("reload: what was in force stays", "part", p.name, "error", err)
			failed = errors.Join(failed, err)
		} else {
			parts = append(parts, p.name)
		}
	}
	if len(parts) > 0 {
		log.Info("reloaded", "parts", strings.Join(parts, " "), "secrets", secrets, "log.level",
			in.logLevel())
	}
	return failed
}

// readLogLevel reads log.level again. After an error in any setting the level stays.
//
// All settings are read for it, so an error anywhere in the file is found here.
func (in *Installation) readLogLevel() error {
	next, err := in.listeners.c.Again()
	if err == nil {
		in.level.Set(next.LogLevel())
	}
	return err
}

// logLevel is the level from which the log is written.
func (in *Installation) logLevel() string {
	if in.level == nil {
		return in.listeners.c.String("log.level")
	}
	return strings.ToLower(in.level.Level().String())
}

// reloadOnHangup reloads at every signal until the returned function is called.
//
// Two signals while one reload runs become one more reload: the channel has room for one. stop
// waits for a reload that runs.
func (in *Installation) reloadOnHangup(hangups <-chan os.Signal, log *slog.Logger) (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-hangups:
				_ = in.reload(log) // it has logged the error, and the server goes on
			case <-ended:
				return
			}
		}
	}()
	return func() {
		close(ended)
		<-done
	}
}
