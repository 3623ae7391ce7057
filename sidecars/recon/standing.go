package recon

import "posttrade/sidecars/store"

// ReadStanding is the last trade sequence that the books say anything about.
func ReadStanding(tx *store.Tx) (tradeSeq uint64, err error) {
	swept, err := tx.Cursor(cursorFast)
	if err != nil {
		return 0, err
	}
	verified, err := tx.Cursor(cursorVerify)
	return max(swept, verified), err
}

// SetBack takes everything behind a trade sequence out of the books: what is there belongs
// to rows that were given up. Before the reconciliation runs.
func SetBack(tx *store.Tx, tradeSeq uint64) error {
	_, _, err := setBack(tx, tradeSeq)
	return err
}
