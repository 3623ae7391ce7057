package installation

import (
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"posttrade/app/settings"
	"posttrade/matcher/note"
	"posttrade/sidecars/control"
	"posttrade/sidecars/store"
)

// ByHand returns the note of the act of a command. Its caller has no token: the account of
// the operating system and the machine's name stand for subject and address. A reason is required
// in production.
//
// Kind and object are left to the caller. Errors are usage errors of the flag --reason.
func ByHand(c *settings.Config, reason string) (n note.Note, err error) {
	switch {
	case reason != "":
		if n.Reason, err = note.CheckReason(reason); err != nil {
			return n, settings.Usagef("reason: %v", err)
		}
	case c.String("profile") == "production":
		return n, settings.Usagef("reason: profile=production needs it: why this is done")
	}
	n.Subject, n.Address = OSUser(), hostName()
	return n, nil
}

// OSUser is the subject of a command without a token: the account of the operating system, or the
// number of one without a name.
//
// The prefix os: tells it from the subject of a token, which is a name that an operator has
// chosen.
func OSUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return "os:" + strings.ToValidUTF8(u.Username, "?")
	}
	return fmt.Sprint("os:", os.Getuid())
}

// hostName is the machine's name, "" when it has none.
//
// It stands where an act over HTTP has the client's address.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(name, "?")
}

// What an act on a source is about, and its value.
type (
	bySource struct {
		Source control.Source `json:"source"`
	}
	epochValue struct {
		Epoch uint64 `json:"epoch"`
		Begun string `json:"begun,omitempty"` // the act's own time: the record may come later
	}
)

// putEpochAct has a new epoch wait to be put on record, in the transaction that begins it.
//
// The act and the epoch are in one transaction, so neither is there without the other. was is 0
// for the first epoch of a source. The record in the journal follows when a server runs: see
// pendingActs.
func putEpochAct(tx *store.Tx, name control.Source, by note.Note, was, is uint64) error {
	now := time.Now()
	a := store.Act{Kind: note.Epoch, Subject: by.Subject, Address: by.Address, Reason: by.Reason,
		Object: string(note.Value(bySource{name})), MadeAt: now.UnixMilli(),
		New: string(note.Value(epochValue{is, now.UTC().Format(time.RFC3339)}))}
	if was != 0 {
		a.Old = string(note.Value(epochValue{Epoch: was}))
	}
	return tx.PutAct(&a)
}

// What an act on a record of a source is about, and its values.
type (
	flaggedAccount struct {
		AccountID uint32         `json:"accountId"`
		Source    control.Source `json:"source"`
	}
	flaggedSecurity struct {
		Security string         `json:"security"`
		Source   control.Source `json:"source"`
	}
	accountFlags struct {
		Enabled bool `json:"enabled"`
	}
	securityFlags struct {
		Enabled bool `json:"enabled"`
		Halted  bool `json:"halted"`
	}
)

// putFlagAct has a change of a flag by hand, at a source, wait to be put on record. Its kind is
// that of the same act at the order-matcher.
//
// by has subject, address and reason; was and is are the record before and after. A change of
// halted decides over one of enabled. The account is the one with the number in is, or, with a
// ticker, the security. The act is in the transaction that changes the row.
func putFlagAct(tx *store.Tx, by *store.Act, was, is *control.Record) error {
	a := *by
	switch a.Kind = note.Disable; {
	case was.Halted != is.Halted:
		a.Kind = note.Halt
	case is.Enabled:
		a.Kind = note.Enable
	}
	var object, before, after any = flaggedAccount{is.ID, control.Account}, accountFlags{was.Enabled},
		accountFlags{is.Enabled}
	if is.Ticker != "" {
		object = flaggedSecurity{is.Ticker, control.Security}
		before = securityFlags{was.Enabled, was.Halted}
		after = securityFlags{is.Enabled, is.Halted}
	}
	a.Object, a.Old, a.New = string(note.Value(object)), string(note.Value(before)),
		string(note.Value(after))
	a.MadeAt = time.Now().UnixMilli()
	return tx.PutAct(&a)
}
