package quorum

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"

	"posttrade/ring/must"
)

// openTestWire opens a port on the loopback address. Unless o sets another Answer, it answers a
// question with "re: " and the question.
func openTestWire(t *testing.T, o wireOptions) *wire {
	t.Helper()
	if o.Answer == nil {
		o.Answer = func(_ string, request []byte) ([]byte, error) {
			return append([]byte("re: "), request...), nil
		}
	}
	w := must.Get(openWire("127.0.0.1:0", o))(t)
	w.Serve("1.aa")
	t.Cleanup(func() { must.OK(t, w.Close()) })
	return w
}

// testAddress is where a wire of a test listens, with its server id.
func (w *wire) testAddress() raft.ServerAddress { return raft.ServerAddress(w.Addr().String()) }

// modes are the two ways in which members talk.
func modes(t *testing.T, f func(t *testing.T, config func() *tls.Config)) {
	ca := newAuthority(t)
	t.Run("plain", func(t *testing.T) { f(t, func() *tls.Config { return nil }) })
	t.Run("tls", func(t *testing.T) { f(t, func() *tls.Config { return ca.member(t) }) })
}

func TestWireCarriesStreamsAndQuestions(t *testing.T) {
	modes(t, func(t *testing.T, config func() *tls.Config) {
		leaks := goleak.IgnoreCurrent()
		t.Run("all", func(t *testing.T) {
			a, b := openTestWire(t, wireOptions{TLS: config()}), openTestWire(t, wireOptions{TLS: config()})
			echo := make(chan error, 1)
			go func() {
				c, err := b.Accept()
				if err == nil {
					_, err = io.Copy(c, c)
				}
				echo <- errors.Join(err, c.Close())
			}()
			c, err := a.Dial(b.testAddress(), time.Minute)
			must.OK(t, err)
			sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
			go func() { _, _ = c.Write(sent) }()
			got := make([]byte, len(sent))
			_, err = io.ReadFull(c, got)
			must.OK(t, err)
			if !bytes.Equal(got, sent) {
				t.Error("the stream has changed on its way")
			}
			for _, question := range [][]byte{nil, []byte(`{"status":true}`),
				bytes.Repeat([]byte("q"), wireMaxBytes-4)} {
				answer := must.Get(a.Ask(t.Context(), b.address, question))(t)
				if string(answer) != "re: "+string(question) {
					t.Errorf("%d bytes asked, %d answered", len(question), len(answer))
				}
			}
			must.OK(t, c.Close())
			must.OK(t, c.Close())
			must.OK(t, <-echo)
		})
		goleak.VerifyNone(t, leaks)
	})
}

// TestWireCarriesTheLibrary runs the library's own transport over the port.
func TestWireCarriesTheLibrary(t *testing.T) {
	modes(t, func(t *testing.T, config func() *tls.Config) {
		a, b := openTestWire(t, wireOptions{TLS: config()}), openTestWire(t, wireOptions{TLS: config()})
		from, to := raft.NewNetworkTransport(a, 3, time.Minute, io.Discard),
			raft.NewNetworkTransport(b, 3, time.Minute, io.Discard)
		if to.LocalAddr() != b.testAddress() {
			t.Errorf("the library calls it %q, its address is %q", to.LocalAddr(), b.testAddress())
		}
		go func() {
			rpc := <-to.Consumer()
			rpc.Respond(&raft.RequestVoteResponse{Term: rpc.Command.(*raft.RequestVoteRequest).Term + 1,
				Granted: true}, nil)
		}()
		var vote raft.RequestVoteResponse
		must.OK(t, from.RequestVote("1.aa", b.testAddress(), &raft.RequestVoteRequest{Term: 41}, &vote))
		if vote.Term != 42 || !vote.Granted {
			t.Errorf("%+v", vote)
		}
		must.OK(t, errors.Join(from.Close(), to.Close()))
	})
}

func TestStreamForAnotherServerIsRefused(t *testing.T) {
	a, b := openTestWire(t, wireOptions{}), openTestWire(t, wireOptions{})
	for name, address := range map[string]raft.ServerAddress{
		"a lost disk":  addressOf(b.address, "1.bb"),
		"a prefix":     addressOf(b.address, "1.a"),
		"nobody":       raft.ServerAddress(b.address),
		"a long name":  addressOf(b.address, raft.ServerID(strings.Repeat("x", 255))),
		"too long one": addressOf(b.address, raft.ServerID(strings.Repeat("x", 256))),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := a.Dial(address, time.Minute)
			must.ErrorContains(t, err, "address="+string(address))
		})
	}
	w, err := openWire("127.0.0.1:0", wireOptions{})
	must.OK(t, err)
	_, err = a.Dial(addressOf(w.address, "1.aa"), time.Minute) // it does not know its own server yet
	must.ErrorContains(t, err, w.address)
	_, err = a.Ask(t.Context(), w.address, nil)
	must.Be(t, err, ErrAnswer) // nor answer anything
	must.OK(t, w.Close())
}

// TestStrangersAreLeftOutside dials a member with everything that is not right. Neither side
// accepts the other as a member, and the member keeps working.
func TestStrangersAreLeftOutside(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	hour := time.Now().Add(time.Hour)
	old := ca.member(t)
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	nameless := ca.member(t)
	nameless.Certificates = nil
	for _, tt := range []struct {
		name           string
		server, client *tls.Config
	}{
		{"the client's certificate is of another authority", ca.member(t),
			other.config(t, ca, "127.0.0.1", hour)},
		{"the server's certificate is of another authority", other.config(t, ca, "127.0.0.1", hour),
			ca.member(t)},
		{"the client trusts another authority", ca.member(t), ca.config(t, other, "127.0.0.1", hour)},
		{"the client's certificate has expired", ca.member(t),
			ca.config(t, ca, "127.0.0.1", time.Now().Add(-time.Minute))},
		{"the server's certificate has expired", ca.config(t, ca, "127.0.0.1",
			time.Now().Add(-time.Minute)), ca.member(t)},
		{"the server is another host", ca.config(t, ca, "member-2", hour), ca.member(t)},
		{"the client has no certificate", ca.member(t), nameless},
		{"the client speaks an old version", ca.member(t), old},
		{"the client speaks plainly", ca.member(t), nil},
		{"the server speaks plainly", nil, ca.member(t)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer := func(string, []byte) ([]byte, error) {
				t.Error("a stranger was answered")
				return nil, nil
			}
			server := openTestWire(t, wireOptions{TLS: tt.server, Answer: answer})
			client := openTestWire(t, wireOptions{TLS: tt.client})
			_, err := client.Dial(server.testAddress(), time.Minute)
			must.ErrorContains(t, err, server.address)
			_, err = client.Ask(t.Context(), server.address, []byte("who are you"))
			must.ErrorContains(t, err, server.address)
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("nobody hung up: %v", err)
			}
		})
	}
}

func TestPlainTalkStaysOnTheMachine(t *testing.T) {
	_, err := openWire("0.0.0.0:0", wireOptions{})
	must.Be(t, err, ErrPlain)
	must.ErrorContains(t, err, "0.0.0.0:0")
	_, err = openWire(":0", wireOptions{})
	must.Be(t, err, ErrPlain)
	w := openTestWire(t, wireOptions{})
	_, err = w.Dial("member-2.example:7000/2.aa", time.Minute)
	must.Be(t, err, ErrPlain)
	must.ErrorContains(t, err, "member-2.example:7000")
	_, err = w.Ask(t.Context(), "192.0.2.7:7000", nil)
	must.Be(t, err, ErrPlain)
	must.ErrorContains(t, err, "192.0.2.7:7000")
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "127.8.9.1:1": true, "[::1]:1": true, "localhost:1": true, "localhost": true,
		"Localhost:1": true, "LOCALHOST": true,
		"::1":       true,
		"127.0.0.1": true, "": false, ":1": false, "0.0.0.0:1": false, "[::]:1": false,
		"10.0.0.1:1":          false,
		"localhost.example:1": false, "127.0.0.1.example:1": false,
	} {
		if got := IsLoopback(address); got != want {
			t.Errorf("%q: loopback %v, want %v", address, got, want)
		}
	}
}

func TestWireSaysWhyItCannotListen(t *testing.T) {
	w := openTestWire(t, wireOptions{})
	_, err := openWire(w.address, wireOptions{})
	must.ErrorContains(t, err, "address="+w.address)
	_, err = openWire("localhost", wireOptions{})
	must.ErrorContains(t, err, "address=localhost")
	gone, err := openWire("127.0.0.1:0", wireOptions{})
	must.OK(t, err)
	must.OK(t, gone.Close())
	_, err = w.Dial(addressOf(gone.address, "1.aa"), time.Minute)
	must.ErrorContains(t, err, gone.address)
}
