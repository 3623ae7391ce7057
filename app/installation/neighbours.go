package installation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/matcher"
	"posttrade/sidecars/projection"
	"posttrade/sidecars/recon"
	"posttrade/sidecars/riskextract"
	"posttrade/sidecars/store"
	"posttrade/sidecars/tca"
)

// neighbours are the neighbours in files; the database is added when it can be opened. They are
// compared in this order, and the first one that does not agree is the error. A new one is added
// here.
func neighbours(c *settings.Config) []neighbour {
	sink := c.ExtractSink()
	return []neighbour{
		tcaNeighbour(c.InDataDir("tca")), extractNeighbour(sink),
		markerNeighbour(sink), markerNeighbour(c.InDataDir("extracts.followed")),
		evidenceNeighbour(c),
	}
}

// tcaNeighbour is the price history of the TCA.
//
// It knows its last command whole, so an equal sequence with another command is noticed. Giving up
// removes the checkpoint; the TCA makes its index again from the journal.
func tcaNeighbour(dir string) neighbour {
	name := "TCA file " + filepath.Join(dir, "checkpoint")
	return neighbour{name: name, look: func(ctx context.Context) (coverage, error) {
		at, err := tca.ReadCoverage(dir)
		return coverage{genesis: at.Genesis, inputSeq: at.InputSeq,
			of: func(h *engine.History) (bool, error) {
				c, err := h.Command(ctx, at.InputSeq)
				return c == at.Last, err
			}}, err
	}, accept: func(context.Context, *engine.History) (string, error) {
		return "it is made again", tca.Forget(dir)
	}}
}

// extractNeighbour is the newest extract in the sink; it knows the marker that it was made for.
//
// Artifacts have been announced and read by others, so giving up deletes none. It lists them
// instead.
func extractNeighbour(sink string) neighbour {
	name := "extracts in " + sink
	return neighbour{name: name, look: func(ctx context.Context) (coverage, error) {
		newest, err := riskextract.Newest(sink)
		return coverage{inputSeq: newest.Seq, of: func(h *engine.History) (bool, error) {
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

// markerNeighbour is the file that says up to where the markers have been processed.
//
// It knows a sequence alone: a history of the same length with other commands passes here.
func markerNeighbour(dir string) neighbour {
	return neighbour{name: "extract cursor in " + dir, look: func(context.Context) (coverage, error) {
		seq, _, err := riskextract.FileCoverage(dir)
		return coverage{inputSeq: seq}, err
	}, accept: func(_ context.Context, h *engine.History) (string, error) {
		return "set back", riskextract.SetFileBack(dir, h.InputSeq)
	}}
}

// databaseNeighbour is the cursors of a database: of the projection, of reconciliation and of the
// extracts, with the mark of the history that fills it. The newest projected trade is compared
// with the journal's own. Giving up keeps the rows behind the journal under other ids, because the
// next trades get the ids that they have.
func databaseNeighbour(name string, db *store.DB) neighbour {
	return neighbour{name: name, look: func(ctx context.Context) (coverage, error) {
		var rows projection.Coverage
		var s coverage
		err := db.Read(ctx, func(tx *store.Tx) (err error) {
			var compared, extracted uint64
			if rows, err = projection.ReadCoverage(tx); err == nil {
				compared, err = recon.ReadCoverage(tx)
			}
			s = coverage{inputSeq: rows.InputSeq, tradeSeq: max(rows.TradeSeq, compared)}
			if err == nil {
				extracted, err = riskextract.ReadCoverage(tx)
			}
			if err == nil {
				var marked store.History
				marked, _, err = tx.History()
				s.mark = marked.Genesis
			}
			s.inputSeq = max(s.inputSeq, extracted)
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
		if err := db.Hold(ctx); err != nil { // another server may be writing there
			return "", err
		}
		done, err := projection.GiveUp(ctx, db, h.Source, h.TradeSeq,
			func(tx *store.Tx, kept uint64) error {
				return errors.Join(recon.SetBack(tx, kept), riskextract.SetBack(tx, h.InputSeq),
					tx.ForgetHistory())
			})
		if errors.Is(err, projection.ErrForeign) {
			err = fmt.Errorf("%w: %w", err, errOtherGenesis)
		}
		return fmt.Sprintf("%d rows behind trade %d have ids void-... now, the orphan sweep reports them",
			done.Rows, done.Kept), err
	}}
}

// remains are the folders and files that only a start with a journal makes.
//
// Most of them have no cursor that could be compared. But a data directory without a journal that
// has one of them is more likely damaged than new.
var remains = []string{"tca", "extracts", "history", "broker", "stats", "quorum"}

// remainsIn names the remains of an installation in data.dir.
//
// An empty folder does not count.
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
