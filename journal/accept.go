package journal

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// AcceptHistory is an operator's way out when the anchor refuses a history, or
// is lost: it verifies everything in the store but the anchor, and if that
// holds makes an anchor at its head. Commands that the old anchor had seen
// beyond that head are given up, and their sequences will be used again: it is
// a decision, never a repair, and nothing in this module calls it by itself.
func AcceptHistory(ctx context.Context, dir string, o VerifyOptions) (Report, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.boot == "" {
		o.boot = bootID()
	}
	var r Report
	if err := existing(o.FS, dir); err != nil {
		return r, err
	}
	lock, err := lockDir(o.FS, dir)
	if err != nil {
		return r, err
	}
	head, err := acceptable(ctx, dir, &o, &r)
	if err == nil {
		var a *anchor
		if a, err = createAnchor(o.FS, dir, r.Seed, o.boot, slotSynced, head); err == nil {
			r.Anchored = head.inputSeq
			err = a.Close()
		}
	}
	return r, errors.Join(err, lock.Close())
}

// acceptable verifies the store by itself and returns its head. It opens the
// store for writing, so that what is only in its log reaches its tables: the
// anchor may vouch for synced history only.
func acceptable(ctx context.Context, dir string, o *VerifyOptions, r *Report) (head point, err error) {
	l := newLatch(func(error) {}) // this call's error
	po := storeOptions(o.FS, l, quiet{})
	po.ErrorIfNotExists = true
	db, err := openStore(o.FS.PathJoin(dir, storeName), po, l)
	if err != nil {
		return head, err
	}
	defer func() { err = errors.Join(err, closeStore(db, l)) }()
	genesis, err := readGenesis(db)
	if err != nil {
		return head, err
	}
	check, err := newFillCheck(genesis, o.Engine)
	if err != nil {
		return head, err
	}
	r.Seed, r.Replayed = hashOf(genesis), check != nil
	if head, err = readAll(ctx, db, r, check); err == nil {
		err = keepTail(db, dir, o, r, head)
	}
	return head, errors.Join(err, check.close())
}

// readAll walks every commit and returns the end.
func readAll(ctx context.Context, db *pebble.DB, r *Report, check *fillCheck) (point, error) {
	w := newWalker(db, r.Seed)
	defer w.close()
	err := w.walk(0, func(b *decoded) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.add(b)
		r.InputSeq, r.TradeSeq, r.Chain = w.at.inputSeq, w.at.tradeSeq, w.at.chain
		return check.commit(b)
	})
	if err == nil {
		err = checkStrays(db, w.at)
	}
	return w.at, err
}
