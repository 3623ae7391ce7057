package journal

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/journal/transfer"
)

// Transfer is the whole journal as a stream, for Receive: genesis, every block up to the head as it
// is stored, and the newest snapshot that holds with its views image. Meanwhile the journal may be
// appended to and take snapshots.
//
// The stream shows the journal as it was when the Transfer was opened, without holding a version of
// the store: blocks are never changed or removed, so the head alone defines the view, and nothing
// is pinned between two reads. The snapshot's files are kept open, so that they may be pruned.
// Reads run on the caller's thread: see Politely.
//
// A Transfer belongs to one goroutine, which closes it before or after the journal. Its memory is
// about a MiB, and one commit.
type Transfer struct {
	// The journal that is read. share is taken for each piece, so Close of the journal waits for one
	// piece at most.
	j *Journal
	// What is before the stream, and where it ends. Constant: what is appended later is not part of
	// it.
	base point
	head point
	// Bytes of the whole stream (measure).
	size int64

	at    point           // the end of the last commit that was given
	parts []snapshotFrame // of the snapshot, still to give
	ended bool            // the end frame has been made
	err   error           // why the stream has ended

	w   transfer.Writer
	out []byte // made, but not given yet; valid until w makes more
}

// snapshotFrame is one frame of the snapshot: bytes, or a file, of which given bytes are in the
// stream already.
type snapshotFrame struct {
	kind   byte
	body   []byte
	file   vfs.File
	name   string
	length int64 // of the file
	given  int64
}

// Transfer opens a stream of the journal as it is now. It reads the newest snapshot's files in
// full, to verify them, and otherwise only counts. The caller closes it. Any number may be open.
//
// Errors: ErrNoGenesis when there is nothing to transfer yet, ErrClosed, ErrArchived, those of the
// store.
func (j *Journal) Transfer() (*Transfer, error) {
	return j.transfer(Point{}, func() point { return j.safe })
}

// transfer opens the stream of what follows after, the zero Point for all, up to head, which is
// called while mu is held. A head without any wait: what a tail alone has is not part of it.
func (j *Journal) transfer(after Point, head func() point) (_ *Transfer, err error) {
	t := &Transfer{j: j}
	if err := j.share(); err != nil {
		return nil, err
	}
	defer j.reading.RUnlock()
	if _, created := j.Genesis(); !created {
		return nil, fmt.Errorf("journal: transfer dir=%s: %w", j.dir, ErrNoGenesis)
	}
	j.mu.Lock()
	t.head, t.base = head(), point{chain: j.seed}
	j.mu.Unlock()
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	if after.InputSeq > 0 {
		if err := t.follow(after.point()); err != nil {
			return nil, err
		}
	}
	t.at = t.base
	if err := t.begin(); err != nil {
		return nil, err
	}
	if err := t.pick(); err != nil {
		return nil, err
	}
	return t, t.measure()
}

// share takes the right to read the store, which Close waits for; RUnlock gives it back. It never
// waits: once Close has begun it returns ErrClosed.
func (j *Journal) share() error {
	if !j.reading.TryRLock() {
		return ErrClosed
	}
	return nil
}

// Size is the exact number of bytes that Read gives in all.
func (t *Transfer) Size() int64 { return t.size }

// Head is the last input sequence in the stream, and the last trade sequence issued by then.
func (t *Transfer) Head() (inputSeq, tradeSeq uint64) { return t.head.inputSeq, t.head.tradeSeq }

// Read gives the next bytes, io.EOF behind the last. An error is final: damage, named by its key,
// or ErrClosed when the journal or the Transfer has been closed. It reads the store on the caller's
// goroutine, about transfer.ChunkBytes at a time.
func (t *Transfer) Read(p []byte) (int, error) {
	for len(t.out) == 0 && len(p) > 0 {
		if t.err == nil {
			t.err = t.fill()
		}
		if t.err != nil {
			return 0, t.err
		}
	}
	n := copy(p, t.out)
	t.out = t.out[n:]
	return n, nil
}

// Close closes the snapshot's files. It may come before the stream's end, and more than once.
func (t *Transfer) Close() error {
	var err error
	for _, p := range t.parts {
		err = errors.Join(err, p.close())
	}
	t.parts, t.out, t.err = nil, nil, ErrClosed
	return err
}

func (p *snapshotFrame) close() error {
	if p.file == nil {
		return nil
	}
	if err := p.file.Close(); err != nil {
		return fmt.Errorf("journal: close file=%s: %w", p.name, err)
	}
	return nil
}

// fill makes the next bytes, in the order of the stream: header and genesis, commits, snapshot,
// end.
func (t *Transfer) fill() error {
	var err error
	switch {
	case t.w.Len() > 0: // what begin has made
	case t.at.inputSeq < t.head.inputSeq:
		err = t.commits()
	case len(t.parts) > 0:
		err = t.next()
	case !t.ended:
		err = t.end()
	default:
		return io.EOF
	}
	if err != nil {
		return err
	}
	t.out = t.w.Take()
	return nil
}

// begin makes the stream's header and the genesis, and in a section the commit that it goes on
// from. They stay in w until the first Read.
func (t *Transfer) begin() error {
	t.w.Begin(t.base.inputSeq > 0)
	v, closer, err := get(t.j.db, []byte{keyGenesis})
	if err != nil {
		return fmt.Errorf("journal: read key=g: %w", err)
	}
	if _, err := parseGenesis(v); err != nil {
		return errors.Join(fmt.Errorf("journal: read key=g: %w", err), closer.Close())
	}
	t.w.Frame(keyGenesis, v)
	if t.base.inputSeq > 0 {
		t.w.Frame(transfer.KindBase, putPoint(t.base))
	}
	return closer.Close()
}

// commits makes the frames of the next commits, about a chunk of them: each commit's commands, then
// its fills, then its client ids. Its three iterators live for one chunk only, so a slow reader
// keeps no old tables alive. A chunk ends where an archive does.
func (t *Transfer) commits() error {
	if err := t.j.share(); err != nil {
		return err
	}
	defer t.j.reading.RUnlock()
	from, to := t.at, t.head
	db, end, archive, err := t.j.db.of(keyCommands, from.inputSeq+1)
	if err != nil {
		return err
	}
	if archive && end.inputSeq < to.inputSeq {
		to = end
	}
	return iterate(db, newKey(keyCommands, from.inputSeq+1), newKey(keyCommands, to.inputSeq+1),
		func(c *pebble.Iterator) error {
			return iterate(db, newKey(keyFills, from.tradeSeq+1), newKey(keyFills, to.tradeSeq+1),
				func(f *pebble.Iterator) error {
					return iterate(db, newKey(keyIDs, from.inputSeq+1), newKey(keyIDs, to.inputSeq+1),
						func(i *pebble.Iterator) error {
							return t.chunk(to, &blockCursor{it: c, kind: keyCommands},
								&blockCursor{it: f, kind: keyFills}, &blockCursor{it: i, kind: keyIDs})
						})
				})
		})
}

// chunk makes whole commits until there is enough, or they are at to. A commit is never divided
// between two chunks. A history that does not end exactly at to is an error.
func (t *Transfer) chunk(to point, commands, fills, ids *blockCursor) error {
	for t.w.Len() < transfer.ChunkBytes && t.at.inputSeq < to.inputSeq {
		e, err := t.block(commands, t.at.inputSeq+1)
		if err != nil {
			return err
		}
		if e.fills > 0 {
			if _, err := t.block(fills, e.link); err != nil {
				return err
			}
		}
		if e.ids > 0 {
			if _, err := t.block(ids, e.first); err != nil {
				return err
			}
		}
		t.at = point{inputSeq: e.last(), tradeSeq: e.lastTrade(), chain: e.chain}
	}
	if t.at.inputSeq >= to.inputSeq && t.at != to {
		return fmt.Errorf("journal: transfer ends at inputSeq=%d tradeSeq=%d, head is %d, %d: %w",
			t.at.inputSeq, t.at.tradeSeq, to.inputSeq, to.tradeSeq, errSizes)
	}
	return nil
}

// block makes the frame of the block that starts at seq, which is the cursor's next. It checks the
// checksum; the chain and the content are for the receiver.
func (t *Transfer) block(c *blockCursor, seq uint64) (envelope, error) {
	key := newKey(c.kind, seq)
	v, err := c.next(key)
	if err != nil {
		return envelope{}, err
	}
	e, _, err := parseEnvelope(v, c.kind)
	if err == nil && e.first != seq {
		err = errSizes
	}
	if err != nil {
		return e, fmt.Errorf("journal: key=%s: %w", keyName(key), err)
	}
	t.w.Frame(c.kind, v)
	return e, nil
}

// blockCursor goes through the blocks of one kind, in the order of their keys.
type blockCursor struct {
	it    *pebble.Iterator
	kind  byte
	begun bool
}

// next is the value under key, which must be the next one: a block in between, or a missing one, is
// an error. The value holds until the next call.
func (c *blockCursor) next(key []byte) ([]byte, error) {
	var ok bool
	if c.begun {
		ok = c.it.Next()
	} else {
		ok = c.it.First()
		c.begun = true
	}
	if err := c.it.Error(); err != nil {
		return nil, fmt.Errorf("journal: read key=%s: %w", keyName(key), err)
	}
	if !ok || string(c.it.Key()) != string(key) {
		return nil, fmt.Errorf("journal: key=%s is not there: %w", keyName(key), errSizes)
	}
	v, err := c.it.ValueAndErr()
	if err != nil {
		return nil, fmt.Errorf("journal: read key=%s: %w", keyName(key), err)
	}
	return v, nil
}

// next makes the next piece of the snapshot's first part that is left. A file that has become
// shorter is an error: its length is in the stream already.
func (t *Transfer) next() error {
	p := &t.parts[0]
	if p.file == nil {
		t.w.Frame(p.kind, p.body)
		t.parts = t.parts[1:]
		return nil
	}
	if p.given == 0 {
		t.w.Open(p.kind, p.length)
	}
	n := min(p.length-p.given, transfer.ChunkBytes)
	if got, err := p.file.ReadAt(t.w.Body(n), p.given); int64(got) < n {
		return fmt.Errorf("journal: read file=%s offset=%d: %w", p.name, p.given, err)
	}
	if p.given += n; p.given < p.length {
		return nil
	}
	t.parts = t.parts[1:]
	return p.close()
}

// end makes the last frame. A stream of another size than was announced is an error, before its end
// is given.
func (t *Transfer) end() error {
	t.w.End()
	if made := t.w.Made() + int64(t.w.Len()); made != t.size {
		return fmt.Errorf("journal: transfer of inputSeq=%d has %d bytes, %d were counted: %w",
			t.head.inputSeq, made, t.size, errSizes)
	}
	t.ended = true
	return nil
}

// pick opens the newest snapshot with files that hold, if there is one, between the stream's base
// and its head. One that does not hold is logged: a stream without a snapshot is whole too.
func (t *Transfer) pick() error {
	list, bad, err := listSnapshots(t.j.db)
	if err != nil {
		return err
	}
	for _, b := range bad {
		t.j.report(b)
	}
	for _, s := range list {
		if s.InputSeq > t.head.inputSeq || s.InputSeq <= t.base.inputSeq {
			continue
		}
		parts, err := t.j.openParts(s)
		if err == nil {
			t.parts = parts
			return nil
		}
		if !t.j.pruned(s, err) {
			t.j.report(err)
		}
	}
	return nil
}

// openParts opens the files of a snapshot, checks them and keeps them open. The first part is the
// manifest. The caller closes the parts; after an error none is open.
func (j *Journal) openParts(s Snapshot) (parts []snapshotFrame, err error) {
	manifest, err := putManifest(s)
	if err != nil {
		return nil, err
	}
	parts = []snapshotFrame{{kind: keySnapshot, body: manifest}}
	defer func() {
		if err != nil {
			for _, p := range parts {
				err = errors.Join(err, p.close())
			}
		}
	}()
	files := []SnapshotFile{s.State}
	if s.Views != nil {
		files = append(files, *s.Views)
	}
	for _, file := range files {
		path := j.o.FS.PathJoin(j.dir, file.Path)
		f, err := j.o.FS.Open(path, vfs.SequentialReadsOption)
		if err != nil {
			return parts, fmt.Errorf("journal: open file=%s: %w", path, err)
		}
		parts = append(parts, snapshotFrame{kind: transfer.KindFile, file: f, name: path,
			length: file.Bytes})
		if err := file.check(path, f); err != nil {
			return parts, err
		}
	}
	return parts, nil
}
