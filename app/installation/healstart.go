package installation

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/journal/quorum"
)

// damageName is a file in the journal's folder: why this member has ended, or has not started, when
// that was damage on its disk. Such a member would end again: the store meets the damage when it
// compacts. So the next start wants another journal before it opens this one.
//
// The file moves away with the journal, so the next journal begins without it.
const damageName = "damage"

// noteDamage makes the file when err is of damage. The process is about to end, so a disk that does
// not answer is given a moment only.
//
// It does nothing on a single node, which has no other journal to get, and for an error that is
// not of damage, such as a full disk.
func noteDamage(c *settings.Config, err error) {
	if !c.Clustered() || !journal.Damaging(err) {
		return
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		_ = os.WriteFile(filepath.Join(c.InDataDir("journal"), damageName), []byte(err.Error()+"\n"),
			0o600) // without it the next start ends as this one
	}()
	select {
	case <-written:
	case <-time.After(noteTime):
	}
}

const (
	// A disk that has failed may not answer at all, and the process must end.
	noteTime = 50 * time.Millisecond
	// healStartTime is how long a start waits until the others can do without it. Then it starts with
	// what it has.
	healStartTime = time.Minute
)

// healBeforeStart has a member whose last run ended with damage start as a new disk, when the
// others can do without it: see healing.
//
// A nil error without a mark means: start with what there is. It returns an error for settings and
// for the mark alone; a member that cannot be healed must still be able to start and take part. It
// waits for healStartTime at most, during which this member does not serve.
//
// The conditions are those of healing.step. There is no node yet, so the questions go to the other
// members' ports.
func healBeforeStart(ctx context.Context, c *settings.Config, log *slog.Logger) error {
	data := c.String("data.dir")
	text, err := os.ReadFile(filepath.Join(c.InDataDir("journal"), damageName))
	if err != nil || !c.Bool("cluster.heal") {
		return nil
	}
	log.Error("the last run ended with damage; another journal is wanted of the leader", "damage",
		strings.TrimSpace(string(text)))
	if kept := keptIn(data); kept >= mostKept {
		log.Error("no other journal is fetched: the disk", "kept", kept)
		return nil
	}
	room, err := journal.RoomForAnother(c.InDataDir("journal"),
		uint64(c.Bytes("journal.reserve-bytes")))
	if err != nil {
		log.Error("no other journal is fetched", "error", err)
		return nil
	}
	identity, err := quorum.ReadIdentity(c.InDataDir("quorum"))
	if errors.Is(err, quorum.ErrIdentity) {
		return err
	}
	if err != nil {
		return nil // it has never taken part
	}
	memberTLS, err := MemberTLS(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healStartTime)
	defer cancel()
	said := ""
	for {
		err := renounceVote(ctx, c, quorum.Remote{TLS: memberTLS}, identity, room)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			log.Warn("the others cannot do without this member: it starts with what it has", "error", err)
			return nil
		}
		if said != err.Error() {
			said = err.Error()
			log.Warn("the journal is damaged, and another is wanted of the leader", "waitsFor", said)
		}
		select {
		case <-time.After(healPause):
		case <-ctx.Done():
		}
	}
	return markHealing(data, nextKept(data))
}

// errSparing: the leader has agreed, and it is not in force yet.
//
// The caller asks again until the change is in force.
var errSparing = errors.New("the leader takes the vote away")

// renounceVote returns nil when this disk has no vote.
//
// server is the id of this member's disk, and room what fits on it, in bytes. Every other member is
// asked for its state, one after another, and the one that calls itself the leader is asked for the
// vote. The error is the last reason.
func renounceVote(ctx context.Context, c *settings.Config, remote quorum.Remote,
	server string, room uint64) error {
	why := errors.New("no leader is known")
	for _, m := range c.Members() {
		if m.ID == strconv.Itoa(c.Int("cluster.member-id")) {
			continue
		}
		s, err := remote.Status(ctx, m.Raft)
		if err != nil || s.Leader != m.ID {
			continue
		}
		votes := false
		for _, other := range s.Servers {
			votes = votes || other.ID == server && other.Voter
		}
		if !votes {
			return nil
		}
		self := strconv.Itoa(c.Int("cluster.member-id"))
		if why = remote.Spare(ctx, m.Raft, self, server, room); why == nil {
			why = errSparing
		}
	}
	return why
}

// withDamageNoted notes the damage that a start has met.
//
// It returns err as it is.
func withDamageNoted(c *settings.Config, err error) error {
	if err != nil {
		noteDamage(c, err)
	}
	return err
}

// endsWith is what ends the process at its first failure, with the damage noted.
//
// It becomes Options.Fatal: the note is written before the process ends with the failure.
func endsWith(c *settings.Config, fatal func(error)) func(error) {
	return func(err error) {
		noteDamage(c, err)
		fatal(err)
	}
}
