package recon

import "posttrade/sidecars/store"

// ReadCoverage is the last trade sequence that the books describe.
//
// A start compares it with the journal: books beyond the journal's end belong to another history,
// or the journal has lost its end.
func ReadCoverage(tx *store.Tx) (tradeSeq uint64, err error) {
	swept, err := tx.Cursor(cursorFast)
	if err != nil {
		return 0, err
	}
	verified, err := tx.Cursor(cursorVerify)
	return max(swept, verified), err
}

// SetBack removes every entry above a trade sequence from the books: those entries belong to rows
// that were given up. Call it before the reconciliation runs.
//
// Orphans stay: the orphan sweep judges them anew.
func SetBack(tx *store.Tx, tradeSeq uint64) error {
	_, _, err := setBack(tx, tradeSeq)
	return err
}
