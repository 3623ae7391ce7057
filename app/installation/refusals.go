package installation

import (
	"errors"
	"io/fs"
	"log/slog"
	"syscall"

	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/journal/backup"
	"posttrade/journal/evidence"
	"posttrade/journal/quorum"
	"posttrade/sidecars/store"
)

// refusal is a reason for which a start is refused, under the code that the log gives it. Each
// code has a row in docs/operations.md, "When a start is refused".
//
// The codes are in documents and alert rules, so they stay.
type refusal struct {
	code string
	is   error
}

// refusals are the known reasons, the particular ones first.
//
// The order matters: an error can wrap several of them, and the first match is the code.
var refusals = []refusal{
	{"OLDER_JOURNAL", errOlderJournal},
	{"OTHER_HISTORY", errOtherHistory},
	{"ANCHOR_MISSING", journal.ErrAnchorMissing},
	{"ANCHOR_DAMAGED", journal.ErrAnchorDamaged},
	{"HISTORY_SHORTENED", journal.ErrShortened},
	{"HISTORY_DIVERGED", journal.ErrDiverged},
	{"JOURNAL_COPIED", journal.ErrCopied},
	{"JOURNAL_IN_USE", journal.ErrLocked},
	{"JOURNAL_UNFINISHED", journal.ErrUnfinished},
	{"RESTORE_UNFINISHED", backup.ErrRestoring},
	{"TAIL_DAMAGED", journal.ErrTailDamaged},
	{"RAFT_LOG_DAMAGED", quorum.ErrLogDamaged},
	{"RAFT_LOG_SHORTENED", quorum.ErrLogShortened},
	{"JOURNAL_CORRUPT", journal.ErrCorrupt},
	{"ARCHIVE_NEEDED", journal.ErrArchived},
	{"IDENTITY_DAMAGED", quorum.ErrIdentity},
	{"CLUSTER_FOREIGN", quorum.ErrForeign},
	{"CLUSTER_FOREIGN", quorum.ErrOtherMember},
	{"CLUSTER_BEHIND", quorum.ErrBehind},
	{"CLUSTER_REPLACED", quorum.ErrReplaced},
	{"EVIDENCE_KEY", evidence.ErrKey},
	{"DATABASE_FOREIGN", store.ErrForeign},
	{"DATABASE_HELD", store.ErrHeld},
	{"DATABASE_DAMAGED", store.ErrDamaged},
	{"DATABASE_SCHEMA", store.ErrMigration},
	{"ADDRESS_IN_USE", syscall.EADDRINUSE},
	{"DISK_FULL", syscall.ENOSPC},
	{"DISK_ERROR", syscall.EIO},
	{"NO_PERMISSION", fs.ErrPermission},
	{"NO_PERMISSION", syscall.EROFS},
}

// The codes of what is in no list of errors.
const (
	refusedSetting = "SETTING" // exit 2: a setting's name begins the line
	refusedOther   = "OTHER"
)

// codeOfRefusal is the code of the error that has refused a start.
//
// A usage error that wraps a known reason has the code of the reason.
func codeOfRefusal(err error) string {
	for _, r := range refusals {
		if errors.Is(err, r.is) {
			return r.code
		}
	}
	var usage settings.UsageError
	if errors.As(err, &usage) {
		return refusedSetting
	}
	return refusedOther
}

// notStarted logs the code of a refused start. The error itself is the last line.
func notStarted(log *slog.Logger, err error) {
	log.Error("the start is refused", "code", codeOfRefusal(err), "see", "docs/operations.md")
}
