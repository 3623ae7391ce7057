package quorum

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
)

// Remote asks members from outside the cluster, for the command line. Each call opens a connection
// of its own and blocks for the answer, within 5 s or the time that ctx leaves.
type Remote struct {
	TLS *tls.Config // MemberTLS; nil = plain, on loopback addresses only

	Subject, Reason string // the operator, and why, for the record of Add and Remove
}

var (
	// ErrRefused is a member's refusal of a change; the text is its reason.
	ErrRefused = errors.New("refused")
	// ErrOlder: the member's build does not say that it puts changes on record. Nothing was changed.
	ErrOlder = errors.New("this leader is of an older build, which may put no change of the members " +
		"on record: give every member this build first, then repeat; nothing was changed")
)

// Status asks the member at an address what it knows.
func (r Remote) Status(ctx context.Context, hostPort string) (Status, error) {
	return r.ask(ctx, hostPort, question{Ask: askStatus})
}

// Add tells the leader, at an address, that a member will join. The member joins when its process
// is started with an empty disk.
func (r Remote) Add(ctx context.Context, hostPort string, m Member) error {
	return r.change(ctx, hostPort, question{Ask: askAdd, Member: m.ID, Address: m.Raft,
		Subject: r.Subject, Reason: r.Reason})
}

// Remove tells the leader, at an address, to remove a member.
func (r Remote) Remove(ctx context.Context, hostPort, member string) error {
	return r.change(ctx, hostPort, question{Ask: askRemove, Member: member,
		Subject: r.Subject, Reason: r.Reason})
}

// Spare asks the leader, at an address, to do without the vote of a member's disk; see Node.Spare.
// It is for a member that cannot start.
func (r Remote) Spare(ctx context.Context, hostPort, member, server string, room uint64) error {
	return r.change(ctx, hostPort, question{Ask: askSpare, Member: member, Server: server, Room: room})
}

// change asks for a change. A refusal is ErrRefused, an unknown question ErrOlder.
func (r Remote) change(ctx context.Context, hostPort string, q question) error {
	s, err := r.ask(ctx, hostPort, q)
	switch {
	case err == nil && s.Refusal != "":
		return errors.Join(ErrRefused, errors.New(s.Refusal))
	case errors.Is(err, ErrAnswer) && strings.HasSuffix(err.Error(), errQuestion.Error()):
		return fmt.Errorf("%w (%w)", ErrOlder, err)
	}
	return err
}

func (r Remote) ask(ctx context.Context, hostPort string, q question) (Status, error) {
	w := newWire(wireOptions{TLS: r.TLS})
	defer w.Close() // it has nothing to lose
	return ask(ctx, w, hostPort, q)
}
