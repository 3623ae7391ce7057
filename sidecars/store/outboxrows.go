package store

import "math"

// OutboxRow is one change of a control source. It waits to be published, or is published already.
//
// Its states:
//
//   - waiting: neither Published nor a stream sequence;
//   - published: both;
//   - superseded: Published without a stream sequence. It will never be on the stream: a later
//     epoch began, and the snapshot of that epoch holds the row's change.
//
// A row never leaves the table. Supersede, MarkPublished, PutStreamRow and MarkLost move it between
// the states; package outbox decides when.
type OutboxRow struct {
	Version uint64
	Epoch   uint64 // the source's epoch when the change was committed
	// Payload is the message's bytes as they were committed with the change
	// (control.Delta.AppendJSON). They are published unchanged, so a message can be compared with its
	// row byte for byte.
	Payload        []byte
	CreatedAt      int64 // epoch milliseconds
	Published      bool
	StreamSequence uint64 // its sequence on the stream, 0 when it is not there
}

// AddOutbox adds the row of a change, in the change's own transaction.
//
// epoch and version are those that NextVersion has returned in this transaction. payload is copied.
func (t *Tx) AddOutbox(source string, epoch, version uint64,
	payload []byte, nowMillis int64) error {
	_, err := t.Exec(
		"insert into outbox (source, version, epoch, payload, created_at) values ($1, $2, $3, $4, $5)",
		source, version, epoch, string(payload), nowMillis)
	return err
}

// The columns of an OutboxRow, in the order that outboxRow reads.
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
//
// They come by ascending version.
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
//
// Rows that are published behind a waiting one are not looked at.
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

// firstWaiting is the oldest waiting row of a source. The partial index outbox_unpublished answers
// it.
const firstWaiting = `select version, created_at from outbox
	where source = $1 and published_at is null
	order by version limit 1`

// Supersede takes the waiting rows with the versions first to last out of the queue.
//
// The bounds are inclusive. Rows in another state stay as they are.
func (t *Tx) Supersede(source string, first, last uint64, nowMillis int64) (rows int64, err error) {
	return t.Exec(`update outbox set published_at = $1 where source = $2 and published_at is null
		and version >= $3 and version <= $4`, nowMillis, source, first, last)
}

// PutStreamRow makes a row equal to what the stream has under its version, whatever the outbox held
// there before.
//
// It is for a restored database that lacks a change which the stream has.
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
//
// It marks a row in any state, a superseded one too. A version without a row is no error.
func (t *Tx) MarkPublished(source string, first, last, sequence uint64, nowMillis int64) error {
	_, err := t.Exec(`update outbox set published_at = $1, stream_sequence = version + $2
		where source = $3 and version >= $4 and version <= $5`,
		nowMillis, int64(sequence)-int64(first), source, first, last)
	return err
}

// MarkLost notes that the stream no longer has any row from a version on. Rows of the source's
// epoch wait again; older ones are superseded.
//
// The two statements must run in this order: the second takes what the first has left.
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
//
// It is a copy: a reader of another goroutine may keep it.
type Backlog struct {
	Rows         uint64
	First        uint64 // the version of the oldest, 0 for none
	OldestMillis int64  // when that one was committed
	Version      uint64 // the last that the source has assigned
	Epoch        uint64
}

// OutboxBacklog returns the backlog. The waiting rows are all from one version up to the last that
// the source has assigned, so they are not counted one by one.
//
// Cost: two rows, however many wait.
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
