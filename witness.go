package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/sidecars/projection"
	"posttrade/sidecars/recon"
	"posttrade/sidecars/riskextract"
	"posttrade/sidecars/store"
	"posttrade/sidecars/tca"
)

// What follows the journal knows how far it has come, and all of it follows only what is
// on stable storage: whatever happens to the machine, none of it knows more than the
// journal. Where one does, the journal's folder is not the one that it was, and its next
// orders and trades would get ids that stand for others already. So a start asks each of
// these witnesses before it admits anything.

// Test by errors.Is.
var (
	// errOlderJournal: something beside the journal knows more of the history than it.
	errOlderJournal = errors.New("the journal is missing or older than what lies beside it; " +
		"put the right one back, or give up what only the others know with --accept-older-journal")
	// errOtherHistory: something beside the journal is of another history.
	errOtherHistory = errors.New("that is another history than the journal's; put the right journal back, " +
		"or move away what is not its own")
)

// history is the journal as a start has found it.
type history struct {
	genesis            [sha256.Size]byte // zero: the journal has none yet
	inputSeq, tradeSeq uint64
	source             *journal.Journal // that has at least this much
}

// historyOf is the stable history of an open journal; all that it has, while it is open
// for reading only.
func historyOf(j *journal.Journal) history {
	h := history{source: j}
	if _, created := j.Genesis(); created {
		h.genesis = j.Seed()
		h.inputSeq, h.tradeSeq = j.StableHead()
	}
	return h
}

// standing is how far a witness knows the history.
type standing struct {
	genesis            [sha256.Size]byte // zero: it does not say
	mark               string            // of the history that fills a database; empty: it has none
	inputSeq, tradeSeq uint64            // the last that it knows; 0: none, or it does not say
	// of reports whether what it says of its last sequence is so in this history, which
	// goes that far; nil: it says nothing.
	of func(h *history) (bool, error)
}

// witness is one thing that knows how far the history went.
type witness struct {
	name string // with the file or the address, for the operator
	look func(ctx context.Context) (standing, error)
	// accept makes it forget what a journal that is older does not have, and says how.
	accept func(ctx context.Context, h *history) (what string, err error)
}

// compare says what is wrong between what a witness knows and the journal.
func (h *history) compare(name string, s *standing) error {
	switch {
	case s.inputSeq == 0 && s.tradeSeq == 0:
		return nil
	case s.mark != "" && h.genesis != [sha256.Size]byte{} && s.mark != hex.EncodeToString(h.genesis[:]):
		return fmt.Errorf("%s is marked as that of genesis %.12s, the journal has %x: %w",
			name, s.mark, h.genesis[:6], errOtherHistory)
	case s.inputSeq > h.inputSeq || s.tradeSeq > h.tradeSeq:
		return fmt.Errorf("%s knows the history up to %s, the journal ends at sequence %d, trade %d: %w",
			name, s.reach(), h.inputSeq, h.tradeSeq, errOlderJournal)
	case s.genesis != [sha256.Size]byte{} && s.genesis != h.genesis:
		return fmt.Errorf("%s is of genesis %x, the journal of %x: %w",
			name, s.genesis[:8], h.genesis[:8], errOtherHistory)
	case s.of == nil:
		return nil
	}
	same, err := s.of(h)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !same {
		return fmt.Errorf("%s has another entry at %s than the journal: %w", name, s.reach(), errOtherHistory)
	}
	return nil
}

// reach is what a witness knows, in words.
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

// command is the command of a sequence.
func (h *history) command(ctx context.Context, inputSeq uint64) (c matcher.Command, err error) {
	take := func(commands []matcher.Command, _ journal.ClientIDs) error {
		c = commands[0]
		return nil
	}
	err = h.source.ReplayTo(ctx, inputSeq, inputSeq, take)
	return c, err
}

// fill is the fill of a trade sequence.
func (h *history) fill(tradeSeq uint64) (f matcher.Fill, err error) {
	enough := errors.New("enough")
	err = h.source.Fills(tradeSeq, func(fills []matcher.Fill) error {
		f = fills[0]
		return enough
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return f, err
}

// witnesses are those in files. A new one is added here.
func (c *config) witnesses() []witness {
	sink := c.extractSink()
	return []witness{
		tcaWitness(c.inDataDir("tca")), extractWitness(sink),
		markerWitness(sink), markerWitness(c.inDataDir("extracts.followed")),
	}
}

// tcaWitness is the price history.
func tcaWitness(dir string) witness {
	name := "TCA file " + filepath.Join(dir, "checkpoint")
	return witness{name: name, look: func(ctx context.Context) (standing, error) {
		at, err := tca.ReadStanding(dir)
		return standing{genesis: at.Genesis, inputSeq: at.InputSeq, of: func(h *history) (bool, error) {
			c, err := h.command(ctx, at.InputSeq)
			return c == at.Last, err
		}}, err
	}, accept: func(context.Context, *history) (string, error) {
		return "it is made again", tca.Forget(dir)
	}}
}

// extractWitness is the newest extract in the sink: the marker that it was made for.
func extractWitness(sink string) witness {
	name := "extracts in " + sink
	return witness{name: name, look: func(ctx context.Context) (standing, error) {
		newest, err := riskextract.Newest(sink)
		return standing{inputSeq: newest.Seq, of: func(h *history) (bool, error) {
			c, err := h.command(ctx, newest.Seq)
			if err != nil || c.TemplateID != matcher.TemplateRiskExtract {
				return false, err
			}
			day, version, err := c.Extract()
			return store.Date(day) == newest.SessionDate && version == newest.PriceVersion, err
		}}, err
	}, accept: func(_ context.Context, h *history) (string, error) {
		newest, err := riskextract.Newest(sink)
		if err != nil {
			return "", err
		}
		behind := h.inputSeq
		if newest.Seq <= behind { // they are of another history, from wherever on
			behind = 0
		}
		files, err := riskextract.GiveUp(sink, behind)
		return fmt.Sprintf("%d files stay, and are listed in the file given-up", files), err
	}}
}

// markerWitness is the file that says how far the markers are dealt with.
func markerWitness(dir string) witness {
	return witness{name: "extract cursor in " + dir, look: func(context.Context) (standing, error) {
		seq, _, err := riskextract.FileStanding(dir)
		return standing{inputSeq: seq}, err
	}, accept: func(_ context.Context, h *history) (string, error) {
		return "set back", riskextract.SetFileBack(dir, h.inputSeq)
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
		s.of = func(h *history) (bool, error) {
			if rows.TradeSeq == 0 {
				return true, nil
			}
			f, err := h.fill(rows.TradeSeq)
			return rows.Of(&f), err
		}
		return s, err
	}, accept: func(ctx context.Context, h *history) (string, error) {
		done, err := projection.GiveUp(ctx, db, h.source, h.tradeSeq, func(tx *store.Tx, kept uint64) error {
			return errors.Join(recon.SetBack(tx, kept), riskextract.SetBack(tx, h.inputSeq), tx.ForgetHistory())
		})
		return fmt.Sprintf("%d rows behind trade %d have ids void-... now, the orphan sweep reports them",
			done.Rows, done.Kept), err
	}}
}

// remains are the folders and files that only a start with a journal makes.
var remains = []string{"tca", "extracts", "history", "broker", "stats", "quorum"}

// remainsIn names what of an installation lies in data.dir.
func (c *config) remainsIn() (names []string) {
	for _, name := range remains {
		path := c.inDataDir(name)
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
