package installation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/sidecars/projection"
	"posttrade/sidecars/recon"
	"posttrade/sidecars/riskextract"
	"posttrade/sidecars/store"
	"posttrade/sidecars/tca"
)

// Every follower of the journal knows how far it has come, and follows only what is on stable
// storage. So, whatever happens to the machine, no follower knows more than the journal. When one
// does, the journal's folder is not the original one, and its next orders and trades would get ids
// that already stand for others. So a start asks each of these witnesses before it admits anything.

// The errors of a comparison; test them with errors.Is.
var (
	// errOlderJournal: something beside the journal knows more of the history than the journal.
	errOlderJournal = errors.New("the journal is missing or older than what lies beside it; " +
		"put the right one back, or give up what only the others know with --accept-older-journal")
	// errOtherHistory: something beside the journal is of another history.
	errOtherHistory = errors.New(
		"that is another history than the journal's; put the right journal back, " +
			"or move away what is not its own")
)

// standing is how far a witness knows the history.
type standing struct {
	genesis [sha256.Size]byte // zero: the witness does not say
	// of the history that fills a database; empty: the database has none
	mark string
	// the last that the witness knows; 0: none, or it does not say
	inputSeq, tradeSeq uint64
	// of reports whether the witness's last sequence is the same in this history, which goes that far;
	// nil: the witness cannot tell.
	of func(h *engine.History) (bool, error)
}

// witness is one thing that knows how far the history went.
type witness struct {
	name string // with the file or the address, for the operator
	look func(ctx context.Context) (standing, error)
	// accept makes the witness forget what an older journal does not have, and says what it forgot.
	accept func(ctx context.Context, h *engine.History) (what string, err error)
}

// compare returns an error when a witness and the journal do not agree.
func compare(h *engine.History, name string, s *standing) error {
	switch {
	case s.inputSeq == 0 && s.tradeSeq == 0:
		return nil
	case s.mark != "" && h.Genesis != [sha256.Size]byte{} &&
		s.mark != hex.EncodeToString(h.Genesis[:]):
		return fmt.Errorf("%s is marked as that of genesis %.12s, the journal has %x: %w",
			name, s.mark, h.Genesis[:6], errOtherHistory)
	case s.inputSeq > h.InputSeq || s.tradeSeq > h.TradeSeq:
		return fmt.Errorf("%s knows the history up to %s, the journal ends at sequence %d, trade %d: %w",
			name, s.reach(), h.InputSeq, h.TradeSeq, errOlderJournal)
	case s.genesis != [sha256.Size]byte{} && s.genesis != h.Genesis:
		return fmt.Errorf("%s is of genesis %x, the journal of %x: %w",
			name, s.genesis[:8], h.Genesis[:8], errOtherHistory)
	case s.of == nil:
		return nil
	}
	same, err := s.of(h)
	if errors.Is(err, journal.ErrArchived) {
		return nil // what is archived cannot be compared here; the journal's chain goes through it
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !same {
		return fmt.Errorf("%s has another entry at %s than the journal: %w", name, s.reach(),
			errOtherHistory)
	}
	return nil
}

// reach describes what a witness knows.
func (s *standing) reach() string {
	var parts []string
	if s.inputSeq > 0 {
		parts = append(parts, fmt.Sprintf("sequence %d", s.inputSeq))
	}
	if s.tradeSeq > 0 {
		parts = append(parts, fmt.Sprintf("trade %d", s.tradeSeq))
	}
	return strings.Join(parts, ", ")
}

// witnesses are the witnesses in files. A new one is added here.
func witnesses(c *settings.Config) []witness {
	sink := c.ExtractSink()
	return []witness{
		tcaWitness(c.InDataDir("tca")), extractWitness(sink),
		markerWitness(sink), markerWitness(c.InDataDir("extracts.followed")),
		evidenceWitness(c),
	}
}

// tcaWitness is the price history of the TCA.
func tcaWitness(dir string) witness {
	name := "TCA file " + filepath.Join(dir, "checkpoint")
	return witness{name: name, look: func(ctx context.Context) (standing, error) {
		at, err := tca.ReadStanding(dir)
		return standing{genesis: at.Genesis, inputSeq: at.InputSeq,
			of: func(h *engine.History) (bool, error) {
				c, err := h.Command(ctx, at.InputSeq)
				return c == at.Last, err
			}}, err
	}, accept: func(context.Context, *engine.History) (string, error) {
		return "it is made again", tca.Forget(dir)
	}}
}

// extractWitness is the newest extract in the sink; it knows the marker that it was made for.
func extractWitness(sink string) witness {
	name := "extracts in " + sink
	return witness{name: name, look: func(ctx context.Context) (standing, error) {
		newest, err := riskextract.Newest(sink)
		return standing{inputSeq: newest.Seq, of: func(h *engine.History) (bool, error) {
			c, err := h.Command(ctx, newest.Seq)
			if err != nil || c.TemplateID != matcher.TemplateRiskExtract {
				return false, err
			}
			day, version, err := c.Extract()
			return store.Date(day) == newest.SessionDate && version == newest.PriceVersion, err
		}}, err
	}, accept: func(_ context.Context, h *engine.History) (string, error) {
		newest, err := riskextract.Newest(sink)
		if err != nil {
			return "", err
		}
		behind := h.InputSeq
		// the extracts are of another history; it is not known from where on, so all are given up
		if newest.Seq <= behind {
			behind = 0
		}
		files, err := riskextract.GiveUp(sink, behind)
		return fmt.Sprintf("%d files stay, and are listed in the file given-up", files), err
	}}
}

// markerWitness is the file that says up to where the markers have been processed.
func markerWitness(dir string) witness {
	return witness{name: "extract cursor in " + dir, look: func(context.Context) (standing, error) {
		seq, _, err := riskextract.FileStanding(dir)
		return standing{inputSeq: seq}, err
	}, accept: func(_ context.Context, h *engine.History) (string, error) {
		return "set back", riskextract.SetFileBack(dir, h.InputSeq)
	}}
}

// databaseWitness is the cursors of a database. h is the history that is compared.
func databaseWitness(name string, db *store.DB) witness {
	return witness{name: name, look: func(ctx context.Context) (standing, error) {
		var rows projection.Standing
		var s standing
		err := db.Read(ctx, func(tx *store.Tx) (err error) {
			var books uint64
			if rows, err = projection.ReadStanding(tx); err == nil {
				books, err = recon.ReadStanding(tx)
			}
			s = standing{inputSeq: rows.InputSeq, tradeSeq: max(rows.TradeSeq, books)}
			if err == nil {
				books, err = riskextract.ReadStanding(tx)
			}
			if err == nil {
				var marked store.History
				marked, _, err = tx.History()
				s.mark = marked.Genesis
			}
			s.inputSeq = max(s.inputSeq, books)
			return err
		})
		s.of = func(h *engine.History) (bool, error) {
			if rows.TradeSeq == 0 {
				return true, nil
			}
			f, err := h.Fill(rows.TradeSeq)
			return rows.Of(&f), err
		}
		return s, err
	}, accept: func(ctx context.Context, h *engine.History) (string, error) {
		done, err := projection.GiveUp(ctx, db, h.Source, h.TradeSeq,
			func(tx *store.Tx, kept uint64) error {
				return errors.Join(recon.SetBack(tx, kept), riskextract.SetBack(tx, h.InputSeq),
					tx.ForgetHistory())
			})
		return fmt.Sprintf("%d rows behind trade %d have ids void-... now, the orphan sweep reports them",
			done.Rows, done.Kept), err
	}}
}

// remains are the folders and files that only a start with a journal makes.
var remains = []string{"tca", "extracts", "history", "broker", "stats", "quorum"}

// remainsIn names the remains of an installation in data.dir.
func remainsIn(c *settings.Config) (names []string) {
	for _, name := range remains {
		path := c.InDataDir(name)
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if entries, _ := os.ReadDir(path); !info.IsDir() || len(entries) > 0 {
			names = append(names, name)
		}
	}
	return names
}
