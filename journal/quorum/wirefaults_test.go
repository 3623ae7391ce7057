package quorum

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"posttrade/ring/must"
)

// rawDial connects and sends nothing.
func rawDial(t *testing.T, w *wire) net.Conn {
	t.Helper()
	c := must.Get(net.Dial("tcp", w.address))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// mustHangUp waits until the other side has closed the connection.
func mustHangUp(t *testing.T, c net.Conn) {
	t.Helper()
	if n, err := io.Copy(io.Discard, c); n > 0 || errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%d bytes came back, %v", n, err)
	}
}

// TestSilentPeersKeepNobodyOut opens many connections that send nothing, or only a part of a
// greeting, and then talks to the member, which closes those connections.
func TestSilentPeersKeepNobodyOut(t *testing.T) {
	modes(t, func(t *testing.T, config func() *tls.Config) {
		w := openTestWire(t, wireOptions{TLS: config(), timeout: time.Hour})
		var silent []net.Conn
		for i := range 3 * wireMaxPending {
			c := rawDial(t, w)
			if i%2 == 1 {
				must.Get(c.Write([]byte{wireQuestion, 0}))(t)
			}
			silent = append(silent, c)
		}
		peer := openTestWire(t, wireOptions{TLS: config()})
		go func() {
			for {
				if _, err := w.Accept(); err != nil {
					return
				}
			}
		}()
		for range 10 {
			must.Get(peer.Ask(t.Context(), w.address, []byte("still there")))(t)
			c := must.Get(peer.Dial(w.testAddress(), time.Minute))(t)
			must.OK(t, c.Close())
		}
		for _, c := range silent[:2*wireMaxPending] {
			mustHangUp(t, c)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.pending) > wireMaxPending {
			t.Errorf("%d connections pending", len(w.pending))
		}
	})
}

// lastDeadline is a connection that keeps its last deadline.
type lastDeadline struct {
	net.Conn
	at time.Time
}

func (c *lastDeadline) SetDeadline(at time.Time) error {
	c.at = at
	return nil
}

func TestStreamHasNoDeadlineOnceItIsLetIn(t *testing.T) {
	w := openTestWire(t, wireOptions{})
	here, there := net.Pipe()
	in := &lastDeadline{Conn: here}
	taken := make(chan net.Conn)
	go func() {
		c, _ := w.Accept()
		taken <- c
	}()
	go w.serve(&wireConn{Conn: in, raw: in, wire: w})
	out := &lastDeadline{Conn: there, at: time.Now()}
	must.OK(t, greet(out, "1.aa"))
	if c := <-taken; !in.at.IsZero() || !out.at.IsZero() {
		t.Errorf("deadlines %v and %v are left on %v", in.at, out.at, c)
	}
	must.OK(t, errors.Join(here.Close(), there.Close()))
}

func TestSilentPeerIsGivenUp(t *testing.T) {
	modes(t, func(t *testing.T, config func() *tls.Config) {
		w := openTestWire(t, wireOptions{TLS: config(), timeout: time.Millisecond})
		mustHangUp(t, rawDial(t, w))
	})
}

func TestWireHangsUpOnWhatItDoesNotKnow(t *testing.T) {
	var asked atomic.Int32
	w := openTestWire(t, wireOptions{timeout: time.Hour, Answer: func(string, []byte) ([]byte, error) {
		asked.Add(1)
		return nil, nil
	}})
	tooLong := binary.LittleEndian.AppendUint32([]byte{wireQuestion}, wireMaxBytes+1)
	for name, words := range map[string][]byte{
		"another protocol":      []byte("GET / HTTP/1.1\r\n\r\n"),
		"a zero byte":           {0},
		"an oversized question": tooLong,
		"the longest length":    {wireQuestion, 0xff, 0xff, 0xff, 0xff},
	} {
		t.Run(name, func(t *testing.T) {
			c := rawDial(t, w)
			must.Get(c.Write(words))(t)
			mustHangUp(t, c)
		})
	}
	c := rawDial(t, w)
	must.Get(c.Write([]byte{wireQuestion, 9, 0, 0, 0, 'h', 'a', 'l', 'f'}))(t)
	must.OK(t, c.Close())
	must.OK(t, w.Close())
	if n := asked.Load(); n != 0 {
		t.Errorf("%d of them were answered", n)
	}
}

func TestQuestionsThatAreRefused(t *testing.T) {
	reason := errors.New("not the leader")
	w := openTestWire(t, wireOptions{Answer: func(_ string, request []byte) ([]byte, error) {
		switch string(request) {
		case "long":
			return make([]byte, wireMaxBytes+1), nil
		case "long reason":
			return nil, errors.New(string(bytes.Repeat([]byte("x"), wireMaxBytes+1)))
		}
		return nil, reason
	}})
	_, err := w.Ask(t.Context(), w.address, []byte("join"))
	must.Be(t, err, ErrAnswer)
	must.ErrorContains(t, err, reason.Error())
	_, err = w.Ask(t.Context(), w.address, []byte("long"))
	must.Be(t, err, ErrAnswer)
	must.ErrorContains(t, err, ErrQuestion.Error())
	_, err = w.Ask(t.Context(), w.address, []byte("long reason"))
	must.Be(t, err, ErrAnswer)
	_, err = w.Ask(t.Context(), w.address, make([]byte, wireMaxBytes+1))
	must.Be(t, err, ErrQuestion)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = w.Ask(ended, w.address, []byte("join"))
	must.Be(t, err, context.Canceled)
}

// TestAskKeepsToItsAnswer asks peers that answer in a wrong way.
func TestAskKeepsToItsAnswer(t *testing.T) {
	w := openTestWire(t, wireOptions{})
	for name, words := range map[string][]byte{
		"nothing":             nil,
		"a verdict alone":     {wireOK},
		"half an answer":      {wireOK, 9, 0, 0, 0, 'x'},
		"an oversized answer": {wireOK, 0xff, 0xff, 0xff, 0xff},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			must.OK(t, err)
			go answerWith(l, words)
			_, err = w.Ask(t.Context(), l.Addr().String(), []byte("q"))
			must.ErrorContains(t, err, "ask address="+l.Addr().String())
			_, err = w.Dial(addressOf(l.Addr().String(), "1.aa"), time.Minute)
			must.ErrorContains(t, err, "dial address="+l.Addr().String())
			must.OK(t, l.Close())
		})
	}
}

// answerWith reads a greeting or a question, and sends words.
func answerWith(l net.Listener, words []byte) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.ReadFull(c, make([]byte, 6))
		_, _ = c.Write(words)
		_ = c.Close()
	}
}

// TestCloseEndsEverything closes a member's port while everything that can wait for it waits:
// Accept, reads of streams in both directions, a dial and a question that the other side never
// answers, and connections that have not sent anything.
func TestCloseEndsEverything(t *testing.T) {
	modes(t, func(t *testing.T, config func() *tls.Config) {
		leaks := goleak.IgnoreCurrent()
		asked, release := make(chan struct{}), make(chan struct{})
		peer, err := openWire("127.0.0.1:0", wireOptions{TLS: config(),
			Answer: func(string, []byte) ([]byte, error) {
				close(asked)
				<-release
				return nil, nil
			}})
		must.OK(t, err)
		peer.Serve("2.aa")
		w, err := openWire("127.0.0.1:0", wireOptions{TLS: config()})
		must.OK(t, err)
		w.Serve("1.aa")
		mute, err := net.Listen("tcp", "127.0.0.1:0")
		must.OK(t, err)
		silent, err := net.Dial("tcp", w.address)
		must.OK(t, err)

		ends := make(chan error, 5)
		taken := make(chan struct{})
		go func() {
			c, err := w.Accept()
			if close(taken); err == nil {
				_, err = c.Read(make([]byte, 1))
			}
			ends <- err
		}()
		in, err := peer.Dial(w.testAddress(), time.Minute)
		must.OK(t, err)
		<-taken
		out, err := w.Dial(peer.testAddress(), time.Minute)
		must.OK(t, err)
		go func() { _, err := out.Read(make([]byte, 1)); ends <- err }()
		go func() { _, err := w.Accept(); ends <- err }()
		go func() { _, err := w.Ask(context.Background(), peer.address, nil); ends <- err }()
		<-asked
		go func() { _, err := w.Dial(addressOf(mute.Addr().String(), "3.aa"), time.Hour); ends <- err }()
		met, err := mute.Accept()
		must.OK(t, err)

		must.OK(t, w.Close())
		for range cap(ends) {
			if err := <-ends; err == nil {
				t.Error("something ended without an error")
			}
		}
		_, _ = in.Read(make([]byte, 1))
		mustHangUp(t, silent)
		_, err = w.Accept()
		must.Be(t, err, net.ErrClosed)
		_, err = w.Dial(peer.testAddress(), time.Minute)
		must.ErrorContains(t, err, "dial")
		_, err = w.Ask(context.Background(), peer.address, nil)
		must.Be(t, err, net.ErrClosed)
		must.OK(t, w.Close())
		close(release)
		must.OK(t, errors.Join(peer.Close(), mute.Close(), met.Close(), silent.Close()))
		goleak.VerifyNone(t, leaks)
	})
}
