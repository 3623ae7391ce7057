package brokertest

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// patience bounds every wait of the rig. A test that reaches it fails.
const patience = 20 * time.Second

// Config holds the settings in which a test differs from a plain server.
type Config struct {
	User, Password  string // both empty: no authentication
	StoreLimitBytes int64  // of all streams together; 0 is a gibibyte
	Stopped         bool   // the server is absent until Restart
}

// Server is a nats-server with JetStream on the loopback interface.
//
// Clients reach it through the proxy only. The methods that delete and create go past it, so that
// they work while the network hangs.
type Server struct {
	t testing.TB
	c Config
	// dir outlives Stop: Restart finds the streams again.
	dir   string
	proxy *proxy

	mu  sync.Mutex
	srv *server.Server // nil while stopped
}

// External starts a server with its files in a folder of the test.
func External(t testing.TB) *Server { return ExternalWith(t, Config{}) }

// ExternalWith is External with settings.
//
// It ends with the test, the proxy first.
func ExternalWith(t testing.TB, c Config) *Server {
	t.Helper()
	if c.StoreLimitBytes == 0 {
		c.StoreLimitBytes = 1 << 30
	}
	s := &Server{t: t, c: c, dir: t.TempDir()}
	s.proxy = newProxy(t, s.address)
	t.Cleanup(func() {
		s.proxy.close()
		s.Stop()
	})
	if !c.Stopped {
		s.Restart()
	}
	return s
}

// URL returns the address for clients, with the credentials; it is the same for the whole test.
func (s *Server) URL() string {
	u := url.URL{Scheme: "nats", Host: s.proxy.address()}
	if s.c.User != "" {
		u.User = url.UserPassword(s.c.User, s.c.Password)
	}
	return u.String()
}

// address returns where the current server listens, "" while it is stopped.
func (s *Server) address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.srv == nil {
		return ""
	}
	return s.srv.Addr().String()
}

// Stop shuts the server down; its stored data stays.
func (s *Server) Stop() {
	s.mu.Lock()
	srv := s.srv
	s.srv = nil
	s.mu.Unlock()
	if srv != nil {
		srv.Shutdown()
		srv.WaitForShutdown()
	}
}

// Restart starts the server over the same files, after stopping it if it runs.
// It returns when clients can connect; any goroutine.
//
// The server gets another port of its own; URL stays the same.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	srv, err := server.NewServer(&server.Options{
		ServerName: "brokertest", Host: "127.0.0.1", Port: server.RANDOM_PORT,
		Username: s.c.User, Password: s.c.Password,
		NoSigs: true, NoLog: true, JetStream: true, StoreDir: s.dir,
		JetStreamMaxStore: s.c.StoreLimitBytes, JetStreamMaxMemory: 64 << 20,
	})
	if err != nil {
		s.t.Errorf("brokertest: start: %v", err)
		return
	}
	go srv.Start()
	if !srv.ReadyForConnections(patience) {
		s.t.Errorf("brokertest: the server is not ready after %v", patience)
	}
	s.mu.Lock()
	s.srv = srv
	s.mu.Unlock()
}

// Hang lets nothing through in either direction, and closes nothing. New connections are accepted
// and hang as well.
func (s *Server) Hang() { s.proxy.hold(true, true) }

// Mute holds back what the server sends; the server still receives.
func (s *Server) Mute() { s.proxy.hold(false, true) }

// Resume ends Hang and Mute; held data is delivered.
func (s *Server) Resume() { s.proxy.hold(false, false) }

// Cut breaks every open connection; held data is lost. New connections are accepted.
func (s *Server) Cut() { s.proxy.cut() }

// AwaitLastSequence returns when the server has stored the stream up to sequence, whether or not
// the clients know of it; any goroutine.
//
// It asks the server in process, so it works while the network hangs.
func (s *Server) AwaitLastSequence(ctx context.Context, stream string, sequence uint64) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for s.lastSequence(stream) < sequence {
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.t.Errorf("brokertest: stream %s did not reach sequence %d", stream, sequence)
			return
		}
	}
}

// lastSequence asks the current server; 0 when there is no server or no such stream.
func (s *Server) lastSequence(stream string) uint64 {
	s.mu.Lock()
	srv := s.srv
	s.mu.Unlock()
	if srv == nil {
		return 0
	}
	account, err := srv.JszAccount(&server.JSzOptions{Account: server.DEFAULT_GLOBAL_ACCOUNT,
		Streams: true})
	if err != nil {
		return 0
	}
	for _, there := range account.Streams {
		if there.Name == stream {
			return there.State.LastSeq
		}
	}
	return 0
}

// DeleteMessage removes one message from a stream and so leaves a hole.
func (s *Server) DeleteMessage(stream string, sequence uint64) {
	s.t.Helper()
	s.admin("delete message", func(ctx context.Context, js jetstream.JetStream) error {
		there, err := js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		return there.DeleteMsg(ctx, sequence)
	})
}

// DeleteStream removes a stream and all its messages.
func (s *Server) DeleteStream(stream string) {
	s.t.Helper()
	s.admin("delete stream", func(ctx context.Context, js jetstream.JetStream) error {
		return js.DeleteStream(ctx, stream)
	})
}

// DeleteConsumers removes every consumer of a stream and returns how many there were.
func (s *Server) DeleteConsumers(stream string) int {
	s.t.Helper()
	n := 0
	s.admin("delete consumers", func(ctx context.Context, js jetstream.JetStream) error {
		there, err := js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		names := there.ConsumerNames(ctx)
		var all []string
		for name := range names.Name() {
			all = append(all, name)
		}
		if err := names.Err(); err != nil {
			return err
		}
		for _, name := range all {
			if err := there.DeleteConsumer(ctx, name); err != nil {
				return err
			}
			n++
		}
		return nil
	})
	return n
}

// CreateStream makes a stream from the JSON of its settings, as an operator's tool does.
func (s *Server) CreateStream(name, settings string) {
	s.t.Helper()
	s.connection(func(ctx context.Context, conn *nats.Conn) error {
		answer, err := conn.RequestWithContext(ctx, "$JS.API.STREAM.CREATE."+name, []byte(settings))
		if err == nil && containsError(answer.Data) {
			err = fmt.Errorf("%s", answer.Data)
		}
		return err
	}, "create stream")
}

// admin runs do with a client of the API. An error ends the test, named after what.
func (s *Server) admin(what string, do func(context.Context, jetstream.JetStream) error) {
	s.t.Helper()
	s.connection(func(ctx context.Context, conn *nats.Conn) error {
		js, err := jetstream.New(conn)
		if err != nil {
			return err
		}
		return do(ctx, js)
	}, what)
}

// connection connects to the server directly, past the proxy.
//
// The connection does not count in Connections.
func (s *Server) connection(do func(context.Context, *nats.Conn) error, what string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	options := []nats.Option{nats.Name("brokertest")}
	if s.c.User != "" {
		options = append(options, nats.UserInfo(s.c.User, s.c.Password))
	}
	conn, err := nats.Connect("nats://"+s.address(), options...)
	if err != nil {
		s.t.Fatalf("brokertest: %s: %v", what, err)
	}
	defer conn.Close()
	if err := do(ctx, conn); err != nil {
		s.t.Fatalf("brokertest: %s: %v", what, err)
	}
}

// Dir is the folder of the server's files.
func (s *Server) Dir() string { return s.dir }
