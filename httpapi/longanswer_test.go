package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"posttrade/ring/must"
)

func TestLongAnswerIsReadAndWritten(t *testing.T) {
	text := strings.Repeat("0123456789", 5000)
	answer := func() *longAnswer { return &longAnswer{text: []byte(text), home: new(longAnswers)} }
	must.OK(t, iotest.TestReader(answer(), []byte(text)))

	half, rest := make([]byte, len(text)/2), new(bytes.Buffer)
	a := answer()
	must.Get(io.ReadFull(a, half))(t)
	n := must.Get(a.WriteTo(rest))(t)
	if string(half)+rest.String() != text || n != int64(rest.Len()) {
		t.Errorf("%d bytes read and %d written do not make the text", len(half), n)
	}
	if again := must.Get(a.WriteTo(rest))(t); again != 0 {
		t.Errorf("%d bytes behind the end", again)
	}
	broken := errors.New("broken")
	if _, err := answer().WriteTo(failingWriter{broken}); !errors.Is(err, broken) {
		t.Errorf("got %v, want the writer's error", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// A closed answer is empty, and one that was very large keeps no memory.
func TestLongAnswerKeepsABoundedBuffer(t *testing.T) {
	for _, tt := range []struct {
		bytes, kept int
	}{{maxLongAnswer, maxLongAnswer}, {maxLongAnswer + 1, 0}} {
		a := &longAnswer{text: make([]byte, tt.bytes), read: 7, home: new(longAnswers)}
		must.OK(t, a.Close())
		if len(a.text) != 0 || a.read != 0 || cap(a.text) != tt.kept {
			t.Errorf("%d bytes: %d of them, %d kept, read %d", tt.bytes, len(a.text), cap(a.text), a.read)
		}
	}
}

// Connections that send batches at the same time get their own answers: no buffer serves a second
// answer before the first is written.
func TestLongAnswersOfManyConnections(t *testing.T) {
	r := newRig(t)
	for connection := range 8 {
		t.Run(fmt.Sprint(connection), func(t *testing.T) {
			t.Parallel()
			for round := range 10 {
				key := func(i int) string { return fmt.Sprintf("c%d-%d-%d", connection, round, i) }
				items := make([]string, 60+connection*round) // 25 KiB and more
				for i := range items {
					items[i] = orderBody("1", "Buy", "1", "100", `,"clientOrderId":"`+key(i)+`"`)
				}
				a := roundTrip(t, r.address, request{method: "POST", path: "/orders/batch",
					body: "[" + strings.Join(items, ",") + "]"}).want(t, 201, "")
				for i, item := range a.json(t).([]any) {
					if got := item.(map[string]any)["clientOrderId"]; got != key(i) {
						t.Fatalf("%v in the place of %s", got, key(i))
					}
				}
			}
		})
	}
}
