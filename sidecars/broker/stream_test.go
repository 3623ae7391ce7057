package broker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"posttrade/ring/must"
)

func TestEnsureStreamCreatesAndThenChecks(t *testing.T) {
	both(t, func(t *testing.T, b *Broker) {
		ctx := patience(t)
		for range 3 {
			ensure(t, ctx, b, deltas())
		}
		info := must.Get(b.StreamInfo(ctx, deltas().Name))(t)
		if info.Name != deltas().Name || info.FirstSeq != 1 && info.FirstSeq != 0 || info.LastSeq != 0 ||
			info.Messages != 0 || info.DuplicatesWindow != deltas().Duplicates || info.CreatedAt.IsZero() {
			t.Errorf("got %+v", info)
		}
	})
}

func TestEnsureStreamByManyAtOnce(t *testing.T) {
	b, srv := external(t)
	ctx := patience(t)
	other := open(t, Options{URL: srv.URL()})
	for round := range 10 {
		s := Stream{Name: fmt.Sprintf("S%d", round), Subjects: []string{fmt.Sprintf("s.%d", round)}}
		var wg sync.WaitGroup
		for _, b := range []*Broker{b, other, b, other} {
			wg.Go(func() {
				if err := b.EnsureStream(ctx, s); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

// An operator made the stream. A setting that breaks a promise is named, the others are left alone.
func TestEnsureStreamNamesTheFieldThatDiffers(t *testing.T) {
	const window = `"duplicate_window":120000000000`
	const subject, file = `"subjects":["svc.control.account.deltas"],`, `"storage":"file",`
	const ours = subject + file + window
	tests := []struct{ name, settings, field string }{
		{"as ours", ours, ""},
		{"with limits", ours +
			`,"max_age":86400000000000,"max_bytes":1000000,"max_msgs":5000,"discard":"new"`, ""},
		{"with compression and a description",
			ours + `,"compression":"s2","allow_direct":true,"description":"x"`, ""},
		{"with a longer window", subject + file + `"duplicate_window":600000000000`, ""},
		{"in memory", subject + `"storage":"memory",` + window, "storage"},
		{"a work queue", ours + `,"retention":"workqueue"`, "retention"},
		{"by interest", ours + `,"retention":"interest"`, "retention"},
		{"another subject", `"subjects":["svc.control.security.deltas"],` + file + window, "subjects"},
		{"one subject more",
			`"subjects":["svc.control.account.deltas","more"],` + file + window, "subjects"},
		{"a wider subject", `"subjects":["svc.control.account.*"],` + file + window, "subjects"},
		{"a shorter window", subject + file + `"duplicate_window":1000000000`, "duplicate_window"},
		{"one message a subject", ours + `,"max_msgs_per_subject":1`, "max_msgs_per_subject"},
		{"without acknowledgements", ours + `,"no_ack":true`, "no_ack"},
		{"with a transform", ours + `,"subject_transform":{"src":">","dest":"x.>"}`, "subject_transform"},
		{"a mirror", file + `"mirror":{"name":"OTHER"}`, "subjects"},
		{"with sources", ours + `,"sources":[{"name":"OTHER"}]`, "sources"},
	}
	b, srv := external(t)
	ctx := patience(t)
	srv.CreateStream("OTHER", `{"name":"OTHER","subjects":["other"]}`)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv.CreateStream(deltas().Name, `{"name":"`+deltas().Name+`",`+tt.settings+`}`)
			defer srv.DeleteStream(deltas().Name)
			err := b.EnsureStream(ctx, deltas())
			if tt.field == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrStream) ||
				!strings.Contains(err.Error(), "stream differs: "+tt.field+" is ") {
				t.Errorf("got %v, want ErrStream naming %s", err, tt.field)
			}
		})
	}
	t.Run("subjects of another stream", func(t *testing.T) {
		s := deltas()
		s.Subjects = []string{"other"}
		if err := b.EnsureStream(ctx, s); !errors.Is(err, ErrStream) ||
			!strings.Contains(err.Error(), "subjects") {
			t.Errorf("got %v, want ErrStream naming subjects", err)
		}
	})
}

func TestMessagesAreReadBySequenceAndFromTheEnd(t *testing.T) {
	both(t, func(t *testing.T, b *Broker) {
		ctx := patience(t)
		if _, err := b.StreamInfo(ctx, "NONE"); !errors.Is(err, ErrNotFound) {
			t.Errorf("info of no stream gives %v, want ErrNotFound", err)
		}
		if _, err := b.LastMessage(ctx, "NONE", ""); !errors.Is(err, ErrNotFound) {
			t.Errorf("last of no stream gives %v, want ErrNotFound", err)
		}
		s := Stream{Name: "TWO", Subjects: []string{"two.>"}}
		ensure(t, ctx, b, s)
		if _, err := b.LastMessage(ctx, "TWO", ""); !errors.Is(err, ErrNotFound) {
			t.Errorf("last of an empty stream gives %v, want ErrNotFound", err)
		}
		for i, subject := range []string{"two.a", "two.b", "two.a.c"} {
			must.Get(b.Publish(ctx, subject, payload(i), PublishOptions{MsgID: id(i)}))(t)
		}
		if _, err := b.Publish(ctx, "two.a", nil, PublishOptions{}); err != nil { // neither id nor body
			t.Fatal(err)
		}
		type found struct {
			subject, msgID, data string
			sequence             uint64
		}
		check := func(m Message, err error, want found) {
			t.Helper()
			got := found{m.Subject, m.MsgID, string(m.Data), m.Sequence}
			if err != nil || got != want || m.PublishedAt.IsZero() || m.Delivered != 0 {
				t.Errorf("got %+v, %v; want %+v", got, err, want)
			}
			if err := m.Ack(); !errors.Is(err, ErrSettled) {
				t.Errorf("ack of a message that was read gives %v", err)
			}
		}
		m, err := b.Message(ctx, "TWO", 2)
		check(m, err, found{"two.b", id(1), string(payload(1)), 2})
		m, err = b.LastMessage(ctx, "TWO", "")
		check(m, err, found{"two.a", "", "", 4})
		m, err = b.LastMessage(ctx, "TWO", "two.a.>")
		check(m, err, found{"two.a.c", id(2), string(payload(2)), 3})
		for _, sequence := range []uint64{0, 5, 1 << 60} {
			if _, err := b.Message(ctx, "TWO", sequence); !errors.Is(err, ErrNotFound) {
				t.Errorf("sequence %d gives %v, want ErrNotFound", sequence, err)
			}
		}
	})
}

// A store that cannot be made is tried again. The obstacle goes away, as the files of a stream that
// was deleted a moment ago do. The server itself removes this one after its failure.
func TestEnsureStreamWaitsForItsPlace(t *testing.T) {
	b, srv := external(t)
	ctx := patience(t)
	ensure(t, ctx, b, deltas())
	places, err := filepath.Glob(filepath.Join(srv.Dir(), "jetstream", "*", "streams", deltas().Name))
	if err != nil || len(places) != 1 {
		t.Fatalf("the stream's files are in %v, %v", places, err)
	}
	srv.DeleteStream(deltas().Name)
	until(t, ctx, "the files are gone", func() bool {
		_, err := os.Stat(places[0])
		return os.IsNotExist(err)
	})
	until(t, ctx, "the obstacle is there", func() bool { // the server may remove the folder above too
		return os.MkdirAll(filepath.Dir(places[0]), 0o755) == nil &&
			os.WriteFile(places[0], nil, 0o600) == nil
	})
	if err := b.EnsureStream(ctx, deltas()); err != nil {
		t.Error(err)
	}
}
