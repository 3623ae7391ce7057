package quorum

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/ring/must"
)

// someCommands are n commands with correlation ids from ref on.
func someCommands(n int, ref uint64) []matcher.Command {
	list := make([]matcher.Command, n)
	for i := range list {
		switch i % 3 {
		case 0:
			list[i] = matcher.NewCommand(matcher.OrderNew)
			list[i].Qty = int32(i)
		case 1:
			list[i] = matcher.NewSymbolRegister(fmt.Sprint("T", i))
		case 2:
			list[i] = matcher.NewRiskExtract(20_000, 1)
		}
		list[i].InputSeq = ref + uint64(i)
	}
	return list
}

func TestEntryIsReadAsWritten(t *testing.T) {
	for _, n := range []int{1, 2, 7, 1024, maxCommands} {
		for _, cut := range []int{0, n / 2, n} { // where the ring's end was
			commands := someCommands(n, 100)
			id := func(ref uint64) []byte {
				switch i := ref - 100; {
				case i == 0 && n > 1:
					return []byte("first")
				case i%5 == 3:
					return []byte(strings.Repeat("x", 1+int(i)%journal.MaxClientID))
				}
				return nil
			}
			b := appendCommands(nil, 7, 9, commands[:cut], commands[cut:], id)
			e := must.Get(decodeCommands(b))(t)
			if e.author != 7 || e.number != 9 || e.count != n ||
				!bytes.Equal(recordBytes(e.commands), recordBytes(commands)) {
				t.Fatalf("%d commands: author %d number %d count %d", n, e.author, e.number, e.count)
			}
			for _, from := range []int{0, 1, n / 2, n} {
				ids, at := IDs{raw: e.ids, from: from}, from
				for i, text, ok := ids.Next(); ok; i, text, ok = ids.Next() {
					for ; at < from+i; at++ {
						if id(100+uint64(at)) != nil {
							t.Fatalf("from %d: the id of command %d is missing", from, at)
						}
					}
					if want := id(100 + uint64(at)); !bytes.Equal(text, want) {
						t.Fatalf("from %d: command %d has id %q, want %q", from, at, text, want)
					}
					at++
				}
				for ; at < n; at++ {
					if id(100+uint64(at)) != nil {
						t.Fatalf("from %d: the id of command %d is missing at the end", from, at)
					}
				}
			}
		}
	}
}

func TestDamagedEntriesAreRefused(t *testing.T) {
	id := func(ref uint64) []byte {
		if ref == 102 {
			return []byte("abc")
		}
		return nil
	}
	good := appendCommands(nil, 1, 1, someCommands(4, 100), nil, id)
	change := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(good)) }
	for name, b := range map[string][]byte{
		"a short header": good[:commandsHeader-1],
		"one byte less":  good[:len(good)-1],
		"one byte more":  append(bytes.Clone(good), 0),
		"no commands":    change(func(b []byte) []byte { b[4] = 0; return b[:len(b)-4*64] }),
		"another count":  change(func(b []byte) []byte { b[4] = 5; return b }),
		"a huge count": change(func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[4:],
				1<<31)
			return b
		}),
		"spare bytes":        change(func(b []byte) []byte { b[2] = 1; return b }),
		"ids that are long":  change(func(b []byte) []byte { b[24] = 200; return b }),
		"an id behind all":   change(func(b []byte) []byte { b[28] = 4; return b }),
		"an empty id":        change(func(b []byte) []byte { b[29] = 0; return b }),
		"a long id":          change(func(b []byte) []byte { b[29] = 65; return b }),
		"an unknown command": change(func(b []byte) []byte { b[len(b)-4*64+60] = 99; return b }),
		"another schema":     change(func(b []byte) []byte { b[len(b)-4*64+4]++; return b }),
	} {
		if _, err := decodeCommands(b); !errors.Is(err, ErrEntry) {
			t.Errorf("%s: got %v, want %v", name, err, ErrEntry)
		}
	}
	for name, b := range map[string][]byte{"nothing": nil, "a kind alone": {entryLead},
		"a later version": {entryLead, 2, '{', '}'}} {
		if _, err := kindOf(b); !errors.Is(err, ErrEntry) {
			t.Errorf("%s: got %v, want %v", name, err, ErrEntry)
		}
	}
	if _, err := decodeLeaderEntry([]byte{entryLead, entryVersion, '{'}); !errors.Is(err, ErrEntry) {
		t.Errorf("half a lead: got %v, want %v", err, ErrEntry)
	}
}

// Reading an entry with any content ends in an error or in commands that are whole.
func FuzzEntry(f *testing.F) {
	for _, n := range []int{1, 3} {
		f.Add(appendCommands(nil, 1, 2, someCommands(n, 1), nil,
			func(uint64) []byte { return []byte("id") }))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 2 {
			return
		}
		e, err := decodeCommands(b)
		if err != nil {
			return
		}
		if len(e.commands) != e.count || e.count == 0 {
			t.Fatalf("%d commands, count %d", len(e.commands), e.count)
		}
		ids := IDs{raw: e.ids}
		last := -1
		for i, id, ok := ids.Next(); ok; i, id, ok = ids.Next() {
			if i <= last || i >= e.count || len(id) == 0 || len(id) > journal.MaxClientID {
				t.Fatalf("id %q of command %d after %d", id, i, last)
			}
			last = i
		}
	})
}

func TestEntryDoesNotAllocateForEachCommand(t *testing.T) {
	commands := someCommands(256, 1)
	id := func(uint64) []byte { return nil }
	// the race detector has one of its own
	if n := testing.AllocsPerRun(100, func() { appendCommands(nil, 1, 1, commands, nil, id) }); n > 2 {
		t.Errorf("%v allocations for an entry of 256 commands", n)
	}
}
