package installation

import (
	"context"
	"os"

	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/blotter"
	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/sidecars/recon"
)

// shadowBefore makes a second engine with the state at or before a sequence.
//
// It begins at the newest snapshot at or before that sequence. The caller closes it.
func shadowBefore(k *engine.Engine, before uint64) (*journal.Shadow, error) {
	return journal.NewShadow(k.Journal, engine.RebuildFrom(k.Genesis).Engine, before)
}

// fullHistory is the on-demand index over the journal's own fills: every fill since the first
// command, also those that the blotter has dropped. It is in files in data.dir/history, and empty
// until the first Reindex of this process.
type fullHistory struct {
	*blotter.History
	journal *journal.Journal
}

// newFullHistory removes the indexes of an earlier process. The error is that of making the
// folder.
func newFullHistory(c *settings.Config, k *engine.Engine) (*fullHistory, error) {
	dir := c.InDataDir("history")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &fullHistory{blotter.NewHistory(dir), k.Journal}, nil
}

// Reindex goes through the whole journal, on a thread that gets the processor time that the path of
// an order leaves over.
//
// It blocks for as long as the journal takes to read; ctx ends it. Orders go on meanwhile.
func (h *fullHistory) Reindex(ctx context.Context) (info blotter.HistoryInfo, err error) {
	err = journal.Politely(journal.Bulk, func() (err error) {
		info, err = h.History.Reindex(ctx, h.journal.Fills, h.journal.Head)
		return err
	})
	return info, err
}

// historyOfRecon is the full history as the orphan sweep reads it.
//
// It only translates types, so that recon does not import the blotter's.
type historyOfRecon struct{ *fullHistory }

func (h historyOfRecon) Reindex(ctx context.Context) (recon.HistoryInfo, error) {
	info, err := h.fullHistory.Reindex(ctx)
	return recon.HistoryInfo{
		IndexedTrades: info.IndexedTrades, LastSequence: info.LastSequence,
		LastTradeSeq: info.LastTradeSeq,
	}, err
}

func (h historyOfRecon) Range(from, to uint64, fn func([]matcher.Fill) error) error {
	return h.History.Range(from, to, fn)
}
