package matcher

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"posttrade/ring"
)

// MaxRevocations is how many subjects an engine remembers whose tokens are refused. The look-up is
// a walk over all of them, which only a TOKEN_REVOKE and a restore pay.
const MaxRevocations = 4096

// revocationLife is how long after it a revocation may give its place to another one when the table
// is full: the longest life of a token that this program mints.
const revocationLife = 400 * 24 * 60 * 60 * 1000

// SubjectHash names the subject of tokens: the first half of its SHA-256.
type SubjectHash [2]int64

// HashSubject returns the name of a subject: the first 16 bytes of its SHA-256, as two
// little-endian numbers. The journal has it in place of the subject's own name.
func HashSubject(subject string) SubjectHash {
	sum := sha256.Sum256([]byte(subject))
	return SubjectHash{int64(binary.LittleEndian.Uint64(sum[:8])),
		int64(binary.LittleEndian.Uint64(sum[8:16]))}
}

// String is the hash as 32 hex digits, in the order of the bytes of the SHA-256.
func (h SubjectHash) String() string {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], uint64(h[0]))
	binary.LittleEndian.PutUint64(b[8:], uint64(h[1]))
	return fmt.Sprintf("%x", b)
}

// Revocation refuses the tokens of a subject that were issued up to a time, and those that do not
// say when they were. The engine only keeps it: tokens never reach the engine, the gate refuses
// them.
type Revocation struct {
	Subject SubjectHash
	// Epoch milliseconds, at least 0.
	Millis int64
}

// NewTokenRevoke returns the command that revokes the tokens of a subject issued up to its event
// time, which is nowMillis. Tokens that are issued later are accepted again.
func NewTokenRevoke(subject SubjectHash, nowMillis int64) Command {
	c := NewCommand(TokenRevoke)
	c.LimitPx, c.PriceTicks, c.EventTimeMillis = subject[0], subject[1], nowMillis
	return c
}

// Revocation is what a TOKEN_REVOKE asks for. Of any other command the result means nothing.
func (c *Command) Revocation() Revocation {
	return Revocation{SubjectHash{c.LimitPx, c.PriceTicks}, c.EventTimeMillis}
}

// verifyRevoke is the form of a TOKEN_REVOKE: what it does not use is zero.
func (c *Command) verifyRevoke() error {
	if c.OrderRef != 0 || c.AccountID != 0 || c.SecurityID != 0 || c.Qty != 0 || c.Side != 0 ||
		c.Flags != 0 || c.EventTimeMillis < 0 {
		return fmt.Errorf("matcher: decode revocation: %w", ErrPadding)
	}
	return nil
}

// Revocations are the subjects whose tokens are refused, in the order in which they came.
type Revocations struct {
	rows  []Revocation // the first count are in use
	count int
}

// NewRevocations returns an empty table beside an engine, for a reader of its commands.
func NewRevocations() *Revocations {
	return &Revocations{rows: make([]Revocation, MaxRevocations)}
}

// carveRevocations is NewRevocations in the engine's memory, which grows resident as subjects come.
func carveRevocations(a *ring.Arena) Revocations {
	return Revocations{rows: ring.CarveSparse[Revocation](a, MaxRevocations)}
}

// Take puts a revocation in its place; false when there is no room for it, and then nothing has
// changed. The engine reports that as CAPACITY. A table beside an engine that takes the same
// revocations holds the same rows.
func (t *Revocations) Take(r *Revocation) bool {
	at := t.place(r)
	if at < 0 {
		return false
	}
	t.set(at, r)
	return true
}

// place is where a revocation belongs: in the row of its subject, in a new one, or, when the table
// is full, in the oldest if that is older than any token. It is negative for none. It compares
// event times and not a clock, so every replay gives the same place.
func (t *Revocations) place(r *Revocation) int {
	oldest := 0
	for i := range t.rows[:t.count] {
		if t.rows[i].Subject == r.Subject {
			return i
		}
		if t.rows[i].Millis < t.rows[oldest].Millis {
			oldest = i
		}
	}
	switch {
	case t.count < len(t.rows):
		return t.count
	case r.Millis-t.rows[oldest].Millis > revocationLife:
		return oldest
	}
	return -1
}

// set puts a revocation in its place. The time of a subject never goes back.
func (t *Revocations) set(at int, r *Revocation) {
	row := &t.rows[at]
	if at == t.count {
		t.count++
		*row = Revocation{}
	}
	if row.Subject != r.Subject {
		*row = *r
	}
	row.Millis = max(row.Millis, r.Millis)
}

// tokenRevoke decides a TOKEN_REVOKE. A revocation for a time before the subject's present one is
// accepted and changes nothing.
func (e *Engine) tokenRevoke(c *Command) {
	r := c.Revocation()
	if !e.revoked.Take(&r) {
		e.reject(c, Capacity)
		return
	}
	e.applyEvent(c, 0, EventLast)
}

// EachRevocation calls f for every subject whose tokens are refused, in the order in which they
// came, until f returns false. Only the owner may call it.
func (e *Engine) EachRevocation(f func(Revocation) bool) {
	for _, r := range e.revoked.rows[:e.revoked.count] {
		if !f(r) {
			return
		}
	}
}

// revocation reads a REVOCATION record: the two words of the subject's hash, and the time. Subjects
// come in the order of their rows, each once.
func (s *snapshotReader) revocation() error {
	r := Revocation{SubjectHash{s.columns[0], s.columns[1]}, s.columns[2]}
	t := &s.engine.revoked
	switch {
	case r.Millis < 0:
		return invalid("time", r.Millis)
	case t.count == len(t.rows):
		return fmt.Errorf("more than %d revocations: %w", len(t.rows), ErrSnapshotCapacity)
	case t.place(&r) < t.count:
		return fmt.Errorf("revocation of subject %s: %w", r.Subject, ErrSnapshotTwice)
	}
	t.set(t.count, &r)
	return nil
}
