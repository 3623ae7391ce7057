package acts

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/note"
	"posttrade/ring"
	"posttrade/ring/must"
)

// history is a journal in memory: commands and their texts.
type history struct {
	t     *testing.T
	cmds  []matcher.Command
	texts map[uint64][]byte
	reads int

	archived uint64 // up to here nothing can be read
}

func (h *history) Head() (uint64, uint64) { return uint64(len(h.cmds)), 0 }

func (h *history) ReplayTo(ctx context.Context, from, to uint64,
	fn func([]matcher.Command, journal.ClientIDs) error) error {
	if from <= h.archived {
		return journal.ErrArchived
	}
	for at := from; at <= to; at += 3 { // commits of three commands
		part := h.cmds[at-1 : min(at+2, to)]
		h.reads += len(part)
		if err := fn(part, journal.IDsOf(at, h.encode(at, part))); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// encode is the payload of a block of client ids.
func (h *history) encode(first uint64, part []matcher.Command) (b []byte) {
	last := first
	for i := range part {
		if text := h.texts[part[i].InputSeq]; len(text) > 0 {
			b = binary.AppendUvarint(b, part[i].InputSeq-last)
			b = append(append(b, byte(len(text))), text...)
			last = part[i].InputSeq
		}
	}
	return b
}

func (h *history) add(c matcher.Command, text []byte) {
	c.InputSeq = uint64(len(h.cmds) + 1)
	h.cmds = append(h.cmds, c)
	if len(text) > 0 {
		h.texts[c.InputSeq] = text
	}
}

// noted adds a note and the first sequenced of its commands.
func (h *history) noted(n note.Note, sequenced int, acts ...matcher.Command) {
	h.t.Helper()
	memory := must.Get(ring.Anonymous(ring.MPSCBytes[matcher.Command](2048)))(h.t)
	defer memory.Close()
	in := must.Get(ring.NewMPSC[matcher.Command](memory, 2048))(h.t)
	d := must.Get(desk.New(in, 1))(h.t)
	w := must.Get(n.Write())(h.t)
	ticket := must.Get(d.Acquire(w.Len() + len(acts)))(h.t)
	for i := range acts {
		*ticket.Command(w.Len() + i) = acts[i]
	}
	w.Put(ticket, 1_700_000_000_000)
	for i := range w.Len() + sequenced {
		c := *ticket.Command(i)
		must.OK(h.t, c.Verify())
		c.LeaderEpoch = 7 // a cluster sets it after the submission
		h.add(c, ticket.ClientID(i))
	}
	ticket.Release()
}

func control(t matcher.CommandType, edit func(c *matcher.Command)) matcher.Command {
	c := matcher.NewCommand(t)
	c.EventTimeMillis = 1_700_000_000_000
	edit(&c)
	return c
}

func policy(version int64, kill matcher.Side) matcher.Command {
	return control(matcher.PolicyControl, func(c *matcher.Command) {
		c.PriceTicks, c.Side = version,
			kill
	})
}

func tick(px int64) matcher.Command {
	return control(matcher.PriceTick, func(c *matcher.Command) { c.SecurityID, c.PriceTicks = 1, px })
}

func read(t *testing.T, r *Reader, q Query) string {
	t.Helper()
	var b []byte
	must.OK(t, r.Read(context.Background(), q, func(r *Record) error {
		b = r.AppendJSON(b)
		return nil
	}))
	return string(b)
}

func ticker(uint32) string { return "AAA" }

func TestActsAreReadWithTheirNotes(t *testing.T) {
	h := &history{t: t, texts: map[uint64][]byte{}}
	h.add(policy(1, 1), nil) // of a build that wrote no notes
	h.add(tick(5_000_000), nil)
	long := strings.Repeat("ü", note.MaxReason) // many parts, cut between characters
	h.noted(note.Note{Kind: note.KillSwitch, Subject: "alice", Address: "10.0.0.1", Reason: long,
		Object: note.Value(map[string]string{"policy": "risk"}), Old: note.Value(true),
		New: note.Value(false)}, 1, policy(2, 0))
	killed := len(h.cmds)
	h.noted(note.Note{Kind: note.Price, Subject: "bob", Old: note.Value([]any{nil, 5})}, 2,
		tick(6_000_000), tick(7_000_000))
	priced := len(h.cmds)
	h.noted(note.Note{Kind: note.Settlement, Subject: "bob",
		Object: note.Value(map[string]any{"tradeId": "trd-1", "accountId": 9})}, 0)
	r := New(h, ticker)
	all := strings.Split(strings.TrimSpace(read(t, r, Query{Limit: 100})), "\n")
	if len(all) != 5 {
		t.Fatalf("%d records: %q", len(all), all)
	}
	const time = `"time":"2023-11-14T22:13:20.000Z"`
	want := []string{
		`{"kind":"kill-switch","sequence":1,` + time + `,"subject":null,"address":null,"reason":null,` +
			`"object":{"policy":"risk"},"old":null,"new":{"policyVersion":1,"killSwitch":true}}`,
		`"subject":"alice","address":"10.0.0.1","reason":"` + long +
			`","object":{"policy":"risk"},"old":true,"new":false}`,
		`"object":{"security":"AAA"},"old":null,"new":6}`,
		`"object":{"security":"AAA"},"old":5,"new":7}`,
		`"object":{"accountId":9,"tradeId":"trd-1"},"old":null,"new":null}`,
	}
	for i := range want {
		if !strings.HasSuffix(all[i], want[i]) {
			t.Errorf("record %d is %s", i, all[i])
		}
	}
	for _, tt := range []struct {
		name string
		q    Query
		want []string
	}{
		{"by subject", Query{Subject: "alice"}, all[1:2]},
		{"by kind", Query{Kind: note.Price}, all[2:4]},
		{"by account", Query{AccountID: 9}, all[4:]},
		{"the first page", Query{Limit: 2}, all[:2]},
		{"the page behind it", Query{From: uint64(killed) + 1, Limit: 2}, all[2:4]},
		{"from the act itself, its note before", Query{From: uint64(killed), Limit: 1}, all[1:2]},
		{"from the second price", Query{From: uint64(priced)}, all[3:]},
	} {
		if got := strings.Split(strings.TrimSpace(read(t, r, tt.q)), "\n"); strings.Join(got, "\n") !=
			strings.Join(tt.want, "\n") {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// A crash can leave a note whose command was never sequenced. What follows it is not its act.
func TestANoteIsBelievedOnlyWithItsOwnCommands(t *testing.T) {
	h := &history{t: t, texts: map[uint64][]byte{}}
	n := note.Note{Kind: note.Price, Subject: "mallory", Old: note.Value([]any{nil})}
	h.noted(n, 0, tick(6_000_000))
	h.add(tick(9_000_000), nil) // of the feed
	h.noted(note.Note{Kind: note.KillSwitch, Subject: "mallory"}, 0, policy(2, 1))
	h.noted(note.Note{Kind: note.KillSwitch, Subject: "bob"}, 1, policy(3, 1))
	got := read(t, New(h, ticker), Query{Limit: 10})
	if strings.Contains(got, "mallory") || strings.Count(got, "\n") != 1 ||
		!strings.Contains(got, "bob") {
		t.Errorf("%s", got)
	}
}

// Stretches without an act are walked through once.
func TestQuietStretchesAreLeftOut(t *testing.T) {
	h := &history{t: t, texts: map[uint64][]byte{}}
	quiet := func() {
		for range 2*minQuiet + longest {
			h.add(tick(1_000_000), nil)
		}
	}
	quiet()
	h.noted(note.Note{Kind: note.KillSwitch, Subject: "bob"}, 1, policy(3, 1))
	quiet()
	r := New(h, ticker)
	first := read(t, r, Query{Limit: 10})
	before := h.reads
	h.noted(note.Note{Kind: note.KillSwitch, Subject: "eve"}, 1, policy(4, 0))
	second := read(t, r, Query{Limit: 10})
	if again := h.reads - before; again > 4*longest {
		t.Errorf("%d commands were read again", again)
	}
	if !strings.HasPrefix(second, first) || strings.Count(second, "\n") != 2 {
		t.Errorf("%s", second)
	}
}

// limits is a change of the limits of all accounts, in its parts.
func limits(version int64) []matcher.Command {
	c := matcher.LimitsChange{Version: version, Set: 1<<matcher.LimitOrderQty | 1<<matcher.LimitCollar}
	c.Values[matcher.LimitOrderQty], c.Values[matcher.LimitCollar] = 5, 6
	all := c.AppendTo(nil)
	for i := range all {
		all[i].EventTimeMillis = 1_700_000_000_000
	}
	return all
}

// A policy that the engine has refused is no act: it is there as refused, from wherever the journal
// is read, and what it asked for is not a new value.
func TestRefusedPoliciesAreNoActs(t *testing.T) {
	h := &history{t: t, texts: map[uint64][]byte{}}
	quiet := func(n int) {
		for range n {
			h.add(tick(1_000_000), nil)
		}
	}
	said := func(subject string, version int64) note.Note {
		return note.Note{Kind: note.Limits, Subject: subject, New: note.Value(version),
			Object: note.Value(map[string]string{"policy": "risk"})}
	}
	old := policy(9, 0) // an older build's: any version was taken
	old.Version = matcher.OldestVersion
	h.add(old, nil)
	old.PriceTicks = 5
	h.add(old, nil)
	h.add(policy(5, 1), nil)
	quiet(2 * longest)
	h.noted(said("taken", 6), 1, policy(6, 0))
	first := len(h.cmds)
	h.noted(said("stale", 6), 2, limits(6)...)
	h.noted(said("torn", 7), 1, limits(7)...) // a crash cut it: the version stays
	quiet(2 * longest)
	h.noted(said("whole", 7), 2, limits(7)...)
	h.noted(said("late", 7), 1, policy(7, 1))
	quiet(2 * longest)
	h.noted(said("last", 7), 1, policy(7, 1))
	quiet(longest)
	kinds := func(r *Reader, from int) (list []string) {
		t.Helper()
		for _, line := range strings.Split(strings.TrimSpace(read(t, r, Query{From: uint64(from),
			Limit: 100})), "\n") {
			var v struct {
				Kind, Subject string
				New           any
				Object        struct {
					Act, Code, Policy string
					Asked             any
				}
			}
			must.OK(t, json.Unmarshal([]byte(line), &v))
			text := v.Kind + " " + v.Subject
			if v.Kind == note.ActRefused {
				text += " " + v.Object.Act + " " + v.Object.Code + " " + v.Object.Policy
				if v.New != nil || v.Object.Asked == nil {
					t.Errorf("%s", line)
				}
			}
			list = append(list, text)
		}
		return list
	}
	want := []string{"kill-switch ", "kill-switch ", "refused  kill-switch STALE_VERSION risk",
		"limits taken", "refused stale limits STALE_VERSION risk", "limits whole",
		"refused late limits STALE_VERSION risk", "refused last limits STALE_VERSION risk"}
	one := New(h, ticker)
	if got := kinds(one, 1); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got := kinds(one, first+1); !slices.Equal(got, want[4:]) {
		t.Errorf("read again from %d: %q", first+1, got)
	}
	for from := 1; from < len(h.cmds)-longest; from++ {
		if got := kinds(New(h, ticker), from); !slices.Equal(got, want[len(want)-len(got):]) {
			t.Fatalf("read from %d first: %q", from, got)
		}
	}
	// A reader that follows the head judges what comes later, whatever it asks for.
	follower := New(h, ticker)
	head := len(h.cmds)
	for n := range int64(3) {
		h.noted(said("next", 8), 2, limits(8)...)
		got := kinds(follower, head+1)
		if last := got[len(got)-1]; (n == 0) != (last == "limits next") {
			t.Errorf("change %d of version 8: %q", n, got)
		}
	}
	// What is in an archive that cannot be read counts as none.
	h.archived = uint64(first)
	if got := kinds(New(h, ticker), first+longest+1); !slices.Equal(got, append(slices.Clone(want[5:]),
		"limits next", "refused next limits STALE_VERSION risk",
		"refused next limits STALE_VERSION risk")) {
		t.Errorf("behind an archive: %q", got)
	}
}

// A revocation that the engine has no room for is no act, from wherever the journal is read.
func TestRefusedRevocationsAreNoActs(t *testing.T) {
	h := &history{t: t, texts: map[uint64][]byte{}}
	revoke := func(subject string, days int64) {
		n := note.Note{Kind: note.Revoke, Subject: "ann", Object: note.Value(map[string]string{
			"subject": subject}), New: note.Value(map[string]string{"issuedUpTo": "now"})}
		h.noted(n, 1, matcher.NewTokenRevoke(matcher.HashSubject(subject), days*86_400_000))
	}
	for i := range matcher.MaxRevocations {
		h.add(matcher.NewTokenRevoke(matcher.HashSubject(fmt.Sprint(i)), 0), nil)
	}
	full := len(h.cmds)
	revoke("one more", 1)
	revoke("7", 1)
	revoke("one more", 401)
	want := `"object":{"act":"token-revoke","code":"CAPACITY","asked":{"issuedUpTo":"now"},` +
		`"subject":"one more"},"old":null,"new":null}`
	for _, from := range []int{1, full, full + 1} {
		lines := strings.Split(strings.TrimSpace(read(t, New(h, ticker), Query{From: uint64(from),
			Limit: 1 << 14, Subject: "ann"})), "\n")
		if len(lines) != 3 || !strings.HasPrefix(lines[0], `{"kind":"refused","sequence":`) ||
			!strings.HasSuffix(lines[0], want) {
			t.Fatalf("from %d: %q", from, lines)
		}
		for _, line := range lines[1:] {
			if !strings.HasPrefix(line, `{"kind":"token-revoke",`) {
				t.Errorf("from %d: %s", from, line)
			}
		}
	}
	bare := read(t, New(h, ticker), Query{From: 1, Limit: full, Kind: note.Revoke})
	if n := strings.Count(bare, "\n"); n != full {
		t.Errorf("%d revocations of a build that wrote no notes, want %d", n, full)
	}
}
