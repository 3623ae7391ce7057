package matcher

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"testing"

	"posttrade/ring/must"
)

func revoke(subject string, millis int64) Command {
	return NewTokenRevoke(HashSubject(subject), millis)
}

func (r *rig) revoked() (list []Revocation) {
	r.e.EachRevocation(func(one Revocation) bool {
		list = append(list, one)
		return true
	})
	return list
}

// The hash of a subject is stored: it must never change.
func TestHashOfASubjectIsItsSHA256(t *testing.T) {
	if got := HashSubject("ann").String(); got != "49915e0d7d4b402e3017d010bc1c0e83" {
		t.Errorf("got %s", got)
	}
}

// A state with revocations is restored from its snapshot after each command; the time of a subject
// never goes back.
func TestRevocationsAreKept(t *testing.T) {
	r := newRig(t, testGenesis())
	r.reread = true
	ann, bob := HashSubject("ann"), HashSubject("bob")
	r.must(revoke("ann", 1000))
	r.must(revoke("bob", 500))
	r.must(revoke("ann", 900))
	if got := r.revoked(); !slices.Equal(got, []Revocation{{ann, 1000}, {bob, 500}}) {
		t.Errorf("%v", got)
	}
	r.must(revoke("bob", 1500))
	if got := r.revoked(); !slices.Equal(got, []Revocation{{ann, 1000}, {bob, 1500}}) {
		t.Errorf("%v", got)
	}
}

// A full table refuses further subjects, not those that it has. It gives up the oldest one when no
// token can be that old.
func TestRevocationsAreBounded(t *testing.T) {
	r := newRig(t, testGenesis())
	for i := range MaxRevocations {
		r.must(revoke(strconv.Itoa(i), int64(MaxRevocations-i)))
	}
	r.refused(revoke("one more", 5000), Capacity)
	r.must(revoke("7", 6000))
	r.refused(revoke("one more", 1+revocationLife), Capacity)
	r.must(revoke("one more", 2+revocationLife))
	list := r.revoked()
	if len(list) != MaxRevocations || list[MaxRevocations-1].Subject != HashSubject("one more") ||
		list[7] != (Revocation{HashSubject("7"), 6000}) {
		t.Errorf("%d revocations, the last %v", len(list), list[MaxRevocations-1])
	}
	r.reread = true
	r.must(buy(1, 1, 100)) // the full table is restored
}

func TestRevocationsHaveOneForm(t *testing.T) {
	for name, edit := range map[string]func(c *Command){
		"account": func(c *Command) { c.AccountID = 1 }, "side": func(c *Command) { c.Side = 1 },
		"order": func(c *Command) { c.OrderRef = 1 }, "flags": func(c *Command) { c.Flags = 1 },
		"security": func(c *Command) { c.SecurityID = 1 }, "quantity": func(c *Command) { c.Qty = 1 },
		"a time before 1970": func(c *Command) { c.EventTimeMillis = -1 },
	} {
		c := revoke("ann", 1)
		edit(&c)
		if err := c.Verify(); !errors.Is(err, ErrPadding) {
			t.Errorf("%s: %v", name, err)
		}
	}
	old := revoke("ann", 1)
	old.Version = OldestVersion
	if err := old.Verify(); !errors.Is(err, ErrCommandType) {
		t.Errorf("a record of version 1: %v", err)
	}
}

func TestRefusalsOfStoredRevocations(t *testing.T) {
	read := func(format int32, rows ...[]int64) error {
		text := assemble(after("account 2", func(d *draft) {
			for _, columns := range rows {
				d.record(recordRevocation, columns...)
			}
		})(whole(format)))
		_, err := ReadSnapshot(small(), bytes.NewReader(text))
		return err
	}
	one := []int64{1, 2, 3}
	must.OK(t, read(6, one, []int64{2, 1, 3}))
	full := make([][]int64, MaxRevocations+1)
	for i := range full {
		full[i] = []int64{int64(i), 0, revocationLife * int64(i)}
	}
	for _, tt := range []struct {
		name   string
		format int32
		rows   [][]int64
		want   error
	}{
		{"twice", 6, [][]int64{one, one}, ErrSnapshotTwice},
		{"a negative time", 6, [][]int64{{1, 2, -1}}, ErrSnapshotValue},
		{"too many", 6, full, ErrSnapshotCapacity},
		{"in an older format", 5, [][]int64{one}, ErrSnapshotRecord},
	} {
		if err := read(tt.format, tt.rows...); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}
