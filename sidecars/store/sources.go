package store

import "math"

// OutboxRow is one change of a control source. It waits to be published, or is published already.
type OutboxRow struct {
	Version        uint64
	Epoch          uint64 // the source's epoch when the change was committed
	Payload        []byte
	CreatedAt      int64 // epoch milliseconds
	Published      bool
	StreamSequence uint64 // its sequence on the stream, 0 when it is not there
}

// Superseded reports that the row will never be on the stream: a later epoch began, and the
// snapshot of that epoch holds the row's change.
func (r *OutboxRow) Superseded() bool { return r.Published && r.StreamSequence == 0 }

// Source returns a control source's epoch and the version of its last change; found is false when
// the source has drawn no epoch yet.
func (t *Tx) Source(source string) (epoch, version uint64, found bool, err error) {
	err = t.Query("select epoch, version from sources where source = $1", func(r *Row) error {
		epoch, version, found = uint64(r.Int64(0)), uint64(r.Int64(1)), true
		return nil
	}, source)
	return epoch, version, found, err
}

// DrawEpoch makes sure that a control source has an epoch. A new epoch is the current time, so that
// a database that was made anew never has the epoch of the one before.
func (t *Tx) DrawEpoch(source string, nowMillis int64) error {
	_, err := t.Exec(
		"insert into sources (source, epoch, version) values ($1, $2, 0) on conflict do nothing",
		source, nowMillis)
	return err
}

// SourceKey returns the key with which a control source signs its messages, "" when it has drawn
// none yet.
func (t *Tx) SourceKey(source string) (key string, err error) {
	err = t.Query("select signing_key from source_keys where source = $1", func(r *Row) error {
		key = r.Text(0)
		return nil
	}, source)
	return key, err
}

// DrawKey gives a control source this key unless it has one, and returns the key that it then has.
func (t *Tx) DrawKey(source, key string) (string, error) {
	_, err := t.Exec(
		"insert into source_keys (source, signing_key) values ($1, $2) on conflict do nothing",
		source, key)
	if err != nil {
		return "", err
	}
	return t.SourceKey(source)
}

// LockSource locks the counter row of a control source until the transaction ends. Other writers to
// the source wait.
func (t *Tx) LockSource(source string, nowMillis int64) (epoch, version uint64, err error) {
	return t.raise(source, 0, nowMillis)
}

// NextVersion takes the next version of a control source. The counter row stays locked until the
// transaction ends, so a writer to the source waits here for earlier writers: versions have no
// hole, and a later version is never visible before an earlier one.
func (t *Tx) NextVersion(source string, nowMillis int64) (epoch, version uint64, err error) {
	return t.raise(source, 1, nowMillis)
}

// NextVersions takes n versions at once and returns the first. n single updates of one row in one
// transaction would be slow: PostgreSQL walks through every version of that row.
func (t *Tx) NextVersions(source string, n int, nowMillis int64) (epoch, first uint64, err error) {
	epoch, last, err := t.raise(source, n, nowMillis)
	return epoch, last - uint64(n) + 1, err
}

func (t *Tx) raise(source string, by int, nowMillis int64) (epoch, version uint64, err error) {
	for drawn := false; epoch == 0 && err == nil; drawn = true {
		if drawn {
			if err = t.DrawEpoch(source, nowMillis); err != nil {
				break
			}
		}
		err = t.Query(
			"update sources set version = version + $1 where source = $2 returning epoch, version",
			func(r *Row) error {
				epoch, version = uint64(r.Int64(0)), uint64(r.Int64(1))
				return nil
			}, by, source)
	}
	return epoch, version, err
}

// BumpEpoch gives a control source a new epoch, above its last one and above the given one. It is
// for a database that was restored from a backup. Versions go on and never start over.
func (t *Tx) BumpEpoch(source string, above uint64, nowMillis int64) (epoch uint64, err error) {
	if epoch, _, err = t.LockSource(source, nowMillis); err != nil {
		return 0, err
	}
	epoch = max(epoch+1, above+1, uint64(max(nowMillis, 0)))
	_, err = t.Exec("update sources set epoch = $1 where source = $2", epoch, source)
	return epoch, err
}

// RaiseVersion makes the next version of a control source come after version, if it does not
// already. It is for a restored database, which lacks changes that the stream has.
func (t *Tx) RaiseVersion(source string, version uint64) error {
	_, err := t.Exec("update sources set version = $1 where source = $2 and version < $3", version,
		source, version)
	return err
}

// AddOutbox adds the row of a change, in the change's own transaction.
func (t *Tx) AddOutbox(source string, epoch, version uint64,
	payload []byte, nowMillis int64) error {
	_, err := t.Exec(
		"insert into outbox (source, version, epoch, payload, created_at) values ($1, $2, $3, $4, $5)",
		source, version, epoch, string(payload), nowMillis)
	return err
}

const outboxColumns = "version, epoch, payload, created_at, published_at, stream_sequence"

func outboxRow(r *Row) OutboxRow {
	return OutboxRow{
		Version: uint64(r.Int64(0)), Epoch: uint64(r.Int64(1)),
		Payload: []byte(r.Text(2)), CreatedAt: r.Int64(3),
		Published: !r.Null(4), StreamSequence: uint64(r.Int64(5)),
	}
}

// Unpublished calls each for up to limit rows that are not published, by ascending version.
func (t *Tx) Unpublished(source string, limit int, each func(OutboxRow) error) error {
	return t.Query("select "+outboxColumns+
		" from outbox where source = $1 and published_at is null order by version limit $2",
		func(r *Row) error { return each(outboxRow(r)) }, source, limit)
}

// OutboxFrom calls each for up to limit rows from a version on, published or not.
func (t *Tx) OutboxFrom(source string, version uint64, limit int,
	each func(OutboxRow) error) error {
	return t.Query("select "+outboxColumns+
		" from outbox where source = $1 and version >= $2 order by version limit $3",
		func(r *Row) error { return each(outboxRow(r)) }, source, version, limit)
}

// OutboxBefore returns the row with the highest version below the given one; found is false when
// there is none.
func (t *Tx) OutboxBefore(source string, version uint64) (row OutboxRow, found bool, err error) {
	err = t.Query("select "+outboxColumns+
		" from outbox where source = $1 and version < $2 order by version desc limit 1",
		func(r *Row) error {
			row, found = outboxRow(r), true
			return nil
		}, source, version)
	return row, found, err
}

// LastPublished returns the row with the highest version that the stream has; found is false when
// there is none. Rows are published in order, so the search starts below the waiting rows: there
// may be a million of them.
func (t *Tx) LastPublished(source string) (row OutboxRow, found bool, err error) {
	waiting := int64(math.MaxInt64)
	err = t.Query(firstWaiting, func(r *Row) error {
		waiting = r.Int64(0)
		return nil
	}, source)
	if err != nil {
		return row, false, err
	}
	err = t.Query("select "+outboxColumns+` from outbox where source = $1 and version < $2
		and stream_sequence is not null order by version desc limit 1`,
		func(r *Row) error {
			row, found = outboxRow(r), true
			return nil
		}, source, waiting)
	return row, found, err
}

const firstWaiting = `select version, created_at from outbox
	where source = $1 and published_at is null
	order by version limit 1`

// Supersede takes the waiting rows with the versions first to last out of the queue.
func (t *Tx) Supersede(source string, first, last uint64, nowMillis int64) (rows int64, err error) {
	return t.Exec(`update outbox set published_at = $1 where source = $2 and published_at is null
		and version >= $3 and version <= $4`, nowMillis, source, first, last)
}

// PutStreamRow makes a row equal to what the stream has under its version, whatever the outbox held
// there before.
func (t *Tx) PutStreamRow(source string, row OutboxRow, nowMillis int64) error {
	_, err := t.Exec(
		`insert into outbox (source, version, epoch, payload, created_at, published_at, stream_sequence)
		values ($1, $2, $3, $4, $5, $6, $7) on conflict (source, version) do update set
		epoch = excluded.epoch, payload = excluded.payload, published_at = excluded.published_at,
		stream_sequence = excluded.stream_sequence`,
		source, row.Version, row.Epoch, string(row.Payload), nowMillis, nowMillis, row.StreamSequence)
	return err
}

// MarkPublished notes the stream sequences of the versions first to last, which are consecutive on
// the stream: sequence is the first's.
func (t *Tx) MarkPublished(source string, first, last, sequence uint64, nowMillis int64) error {
	_, err := t.Exec(`update outbox set published_at = $1, stream_sequence = version + $2
		where source = $3 and version >= $4 and version <= $5`,
		nowMillis, int64(sequence)-int64(first), source, first, last)
	return err
}

// MarkLost notes that the stream no longer has any row from a version on. Rows of the source's
// epoch wait again; older ones are superseded.
func (t *Tx) MarkLost(source string, from, epoch uint64) (waiting int64, err error) {
	const lost = " where source = $1 and version >= $2 and stream_sequence is not null"
	waiting, err = t.Exec("update outbox set published_at = null, stream_sequence = null"+lost+
		" and epoch = $3",
		source, from, epoch)
	if err == nil {
		_, err = t.Exec("update outbox set stream_sequence = null"+lost, source, from)
	}
	return waiting, err
}

// Backlog describes the rows of a source that are not published.
type Backlog struct {
	Rows         uint64
	First        uint64 // the version of the oldest, 0 for none
	OldestMillis int64  // when that one was committed
	Version      uint64 // the last that the source has assigned
	Epoch        uint64
}

// OutboxBacklog returns the backlog. The waiting rows are all from one version up to the last that
// the source has assigned, so they are not counted one by one.
func (t *Tx) OutboxBacklog(source string) (b Backlog, err error) {
	if b.Epoch, b.Version, _, err = t.Source(source); err != nil {
		return b, err
	}
	err = t.Query(firstWaiting, func(r *Row) error {
		b.First, b.OldestMillis = uint64(r.Int64(0)), r.Int64(1)
		b.Rows = max(b.Version, b.First) - b.First + 1
		return nil
	}, source)
	return b, err
}
