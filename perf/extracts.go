package perf

import (
	"context"
	"log/slog"
	"strconv"

	"posttrade/app/installation"
	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/sidecars/riskextract"
)

// extractDay is the day for which the rows of the performance table make extracts, in days since
// 1970-01-01.
const extractDay = 20_000

// extracting is an engine with the settings of its extracts: its data folder and its
// counterparties.
type extracting struct {
	*fullEngine
	config *settings.Config
}

// withExtracts gives an engine the counterparties of its accounts: one counterparty and one netting
// set for each, in dollars. They are a file in the engine's folder.
func (r *Run) withExtracts(e *fullEngine) (extracting, error) {
	rows := [][]string{{"accountId", "counterpartyId", "nettingSetId", "currency"}}
	for _, a := range e.Genesis.Accounts {
		id := strconv.Itoa(int(a.ID))
		rows = append(rows, []string{id, "CP" + id, "NS" + id, "USD"})
	}
	path, err := writeRows(e.dir, "counterparties.csv", rows)
	return extracting{e, r.o.Config.With(map[string]string{"data.dir": e.dir,
		"extract.counterparties": path})}, err
}

// extract sequences a marker and makes its extract as the service beside an engine does: cut,
// files, announcement, on a thread with the low priority of the service's thread. It returns the
// rows of both artifacts.
//
// There is no database and no broker, and the announcement goes to a log that is discarded: the
// cost is that of the engine's state, the rendering and the files. It blocks until the extract is
// done.
func (x extracting) extract() (positions, contracts int, err error) {
	ctx := context.Background()
	var seq uint64
	err = desk.SubmitUntil(ctx, x.Desk, 1, func(_ int, command *matcher.Command) error {
		*command = matcher.NewRiskExtract(extractDay, 1)
		return nil
	}, func(a *desk.Answer) error {
		seq = a.InputSeq
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	service := installation.NewExtracts(x.config, x.Engine, nil, nil, riskextract.RoleSingle,
		slog.New(slog.DiscardHandler))
	err = journal.Politely(journal.Bulk, func() error {
		a, err := service.Extractor.Extract(ctx, riskextract.Marker{Seq: seq, SessionDate: extractDay,
			PriceVersion: 1})
		positions, contracts = a.Rows, a.Contracts
		return err
	})
	return positions, contracts, err
}
