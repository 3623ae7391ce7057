package installation

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/httpapi"
	"posttrade/matcher/gate"
	"posttrade/ring/must"
	"posttrade/sidecars/accounts"
	"posttrade/sidecars/recon"
	"posttrade/sidecars/securities"
)

// alwaysLeads is a cluster of one.
type alwaysLeads struct{}

func (alwaysLeads) Leads() bool                    { return true }
func (alwaysLeads) Leader(string) (string, string) { return "1", "" }
func (alwaysLeads) Confirm(context.Context) error  { return nil }
func (alwaysLeads) Member() string                 { return "1" }

// stuckSources never answer; each call sends a value on begun.
type stuckSources struct {
	httpapi.Accounts
	httpapi.Recon
	begun, free chan struct{}
}

type stuckSecurities struct {
	httpapi.Securities
	s *stuckSources
}

func (s *stuckSources) hang() { s.begun <- struct{}{}; <-s.free }

func (s *stuckSources) List(context.Context) ([]accounts.Account, error) {
	s.hang()
	return nil, nil
}

func (s stuckSecurities) List(context.Context) ([]securities.Stock, error) {
	s.s.hang()
	return nil, nil
}

// OrphanSweep goes through the whole history until ctx ends.
func (s *stuckSources) OrphanSweep(ctx context.Context) (recon.SweepResult, error) {
	s.begun <- struct{}{}
	<-ctx.Done()
	return recon.SweepResult{}, ctx.Err()
}

// leadingRig is the services of a leader behind relays that listen.
type leadingRig struct {
	*leading
	stuck *stuckSources
	at    map[string]string
	token string
	log   bytes.Buffer
}

func newLeadingRig(t *testing.T) *leadingRig {
	t.Helper()
	secret := []byte(strings.Repeat("s", 32))
	verifier := must.Get(gate.NewVerifier(secret, "", time.Second, time.Now))(t)
	r := &leadingRig{at: map[string]string{}, stuck: &stuckSources{begun: make(chan struct{}),
		free: make(chan struct{})}}
	r.token = gate.Mint(secret, gate.Claims{Subject: "test", Admin: true}, "", time.Hour, time.Now())
	zero := func() uint64 { return 0 }
	r.leading = &leading{
		in:  &Installation{Member: &member{relays: map[string]*httpapi.Relay{}}},
		log: slog.New(slog.NewTextHandler(&r.log, nil)),
		services: map[string]leaderService{
			"account-service": httpapi.NewAccountService(httpapi.AccountDeps{Accounts: r.stuck,
				Verifier: verifier, Applied: zero, Durable: zero}),
			"reference-data": httpapi.NewReferenceData(httpapi.ReferenceDeps{
				Securities: stuckSecurities{s: r.stuck}, Verifier: verifier, Applied: zero, Durable: zero}),
			"trade-processor": httpapi.NewTradeProcessor(httpapi.ProcessorDeps{Recon: r.stuck,
				Verifier: verifier, Applied: zero, Durable: zero}),
		},
	}
	for name, service := range r.services {
		relay, err := httpapi.NewRelay(name, httpapi.RelayOptions{Cluster: alwaysLeads{}, Applied: zero,
			Durable: zero})
		must.OK(t, err)
		relay.Swap(service)
		r.in.Member.relays[name] = relay
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		must.OK(t, err)
		r.at[name] = listener.Addr().String()
		served := make(chan error, 1)
		go func() { served <- relay.Serve(listener) }()
		t.Cleanup(func() {
			if err := errors.Join(relay.Shutdown(context.Background()), <-served); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	return r
}

// ask sends a request and returns when its handler has begun; answered receives the status.
func (r *leadingRig) ask(t *testing.T, method, service, path string) (answered chan int) {
	t.Helper()
	request := must.Get(http.NewRequest(method, "http://"+r.at[service]+path, nil))(t)
	request.Header.Set("Authorization", "Bearer "+r.token)
	answered = make(chan int, 1)
	go func() {
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Errorf("%s %s: %v", method, path, err)
			answered <- 0
			return
		}
		answer.Body.Close()
		answered <- answer.StatusCode
	}()
	<-r.stuck.begun
	return answered
}

// TestLeavingServicesAreNotWaitedForForEver: two services have a request that does not end. For any
// number of such services, the end of the leader's part waits only as long as its limit.
func TestLeavingServicesAreNotWaitedForForEver(t *testing.T) {
	r := newLeadingRig(t)
	first := r.ask(t, "GET", "account-service", "/account/")
	second := r.ask(t, "GET", "reference-data", "/stocks")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.leave(ctx)
	for _, name := range []string{"account-service", "reference-data"} {
		if got := r.log.String(); !strings.Contains(got, "service="+name) ||
			strings.Contains(got, "trade-processor") {
			t.Errorf("logged %s, want a line of %s and none of trade-processor", got, name)
		}
	}
	close(r.stuck.free)
	if a, b := <-first, <-second; a != 200 || b != 200 {
		t.Errorf("the requests were answered %d and %d", a, b)
	}
}

// TestLeavingServiceEndsItsSweep: a request that goes through the whole history ends when the
// service leaves; no timeout has to end it.
func TestLeavingServiceEndsItsSweep(t *testing.T) {
	r := newLeadingRig(t)
	answered := r.ask(t, "POST", "trade-processor", "/recon/orphan-sweep")
	r.leave(context.Background())
	if status := <-answered; status != 503 {
		t.Errorf("the sweep was answered %d, want 503", status)
	}
	if r.log.Len() > 0 || r.services != nil {
		t.Errorf("logged %s, services %v", r.log.String(), r.services)
	}
}

// TestLeadershipThatCameBackIsAnother: the leadership was lost while the leader's parts were
// started. The parts that began in it end, and start again.
func TestLeadershipThatCameBackIsAnother(t *testing.T) {
	tests := []struct {
		name   string
		during []bool // the changes of leadership during the first begin
		want   string
	}{
		{"kept", nil, "begin end"},
		{"said twice", []bool{true}, "begin end"},
		{"lost", []bool{false}, "begin end"},
		{"lost and back", []bool{false, true}, "begin end begin end"},
		{"lost and back twice", []bool{false, true, false, true}, "begin end begin end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRoles()
			var steps []string
			ctx, cancel := context.WithCancel(t.Context())
			leads := !slices.Equal(tt.during, []bool{false})
			begin := func() error {
				steps = append(steps, "begin")
				if len(steps) == 1 {
					for _, leads := range tt.during {
						r.set(leads)
					}
				}
				if strings.Join(append(steps, "end"), " ") == tt.want && leads {
					cancel()
				}
				return nil
			}
			end := func() {
				if steps = append(steps, "end"); strings.Join(steps, " ") == tt.want {
					cancel()
				}
			}
			r.set(true)
			r.follow(ctx, begin, end, slog.New(slog.DiscardHandler))
			if got := strings.Join(steps, " "); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}
