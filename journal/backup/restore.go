package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"posttrade/journal"
	"posttrade/ring/disk"
)

// The names in a data directory.
//
// While restoringName is there, Whole refuses the directory. It is also the lock of the restore.
const (
	// restoringName is a file: a restore is under way, or was cut short.
	restoringName = "restoring"
	// RestoredName is a folder: what the first start after a restore has to do. Its file origin.json
	// is an Origin; tables.ndjson, if there is one, has the rows of SQL.
	RestoredName = "restored"
	// originName is in the folder RestoredName, journalName in the data directory.
	originName  = "origin.json"
	journalName = "journal"
)

// Origin says what a data directory was restored from. It is JSON in origin.json; the first start
// reads it, and Forget removes it when that start has done its part.
//
// For example:
//
//	{"genesis":"9f86...","inputSequence":1000,"tradeSequence":412,
//	"from":["/backup/mon","/backup/tue"],"rowsFrom":"/backup/mon","rowsSequence":700}
type Origin struct {
	// Genesis is the hex SHA-256 of the genesis record; "" of a build that did not note it.
	Genesis       string   `json:"genesis,omitempty"`
	InputSequence uint64   `json:"inputSequence"` // of the journal's last command
	TradeSequence uint64   `json:"tradeSequence"`
	From          []string `json:"from"` // the directories
	// RowsFrom is the directory whose rows were taken, "" for none, and RowsSequence the last command
	// of its part of the journal.
	RowsFrom     string `json:"rowsFrom,omitempty"`
	RowsSequence uint64 `json:"rowsSequence,omitempty"`
}

// RowsOlder reports that a backup behind the one that the rows are of was used too: what only SQL
// had by then is not among them.
func (o *Origin) RowsOlder() bool {
	return o.RowsFrom != "" && o.RowsFrom != o.From[len(o.From)-1]
}

// ErrRestoring: a restore into the directory was not finished.
var ErrRestoring = errors.New("a restore into it was not finished: run it again")

// Whole refuses a data directory in which a restore was cut short, with ErrRestoring, and one of
// which it cannot tell. A start calls it before it opens anything there.
func Whole(data string) error {
	_, err := os.Stat(filepath.Join(data, restoringName))
	switch {
	case err == nil:
		return fmt.Errorf("data.dir %s: %w", data, ErrRestoring)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("data.dir %s: %w", data, err)
}

// RestoreOptions of Restore.
type RestoreOptions struct {
	// To is the last command to take; 0: all. It must not be beyond the end of the chain; a sequence
	// inside of a commit is possible.
	To uint64
	// Journal are the options with which the journal is received and written.
	Journal journal.Options
	// Verify is called with the folder of the journal, before the directory counts as restored. Its
	// error leaves the mark, so no server starts there. nil: nothing more is verified.
	Verify func(dir string) error
}

// Restore makes a data directory from a chain of backups: the journal, and what the first start
// needs to make everything else again.
//
//   - Errors: ErrNotEmpty, journal.ErrLocked: nothing in data is changed. What Chain says.
//     ErrDamaged and transfer.ErrNotWhole: a file is not what was written; data then holds the mark
//     only.
//
//   - chain is what Chain returned: at least one manifest. Directories behind the one that holds To
//     are not read, and From does not name them.
//
//   - The rows are those of the newest backup that was used and has some, also when To is before
//     its end.
//
//   - Cost: every byte is read and verified once, and the journal is written once. Blocks; one
//     goroutine.
func Restore(data string, chain []*Manifest, o RestoreOptions) (got Origin, err error) {
	last := chain[len(chain)-1]
	if o.To > last.To.InputSeq {
		return got, fmt.Errorf("backup: dir=%s ends at sequence %d, which is before %d: %w", last.dir,
			last.To.InputSeq, o.To, ErrChain)
	}
	r := &restore{data: data, chain: chain, o: o, makeDir: disk.MakeDir,
		lockFile: journal.LockFile}
	if err := r.begin(); err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, r.release()) }()
	if err := r.journal(&got); err != nil {
		return got, err
	}
	if err := r.leaveRows(&got); err != nil {
		return got, err
	}
	if o.Verify != nil {
		if err := o.Verify(filepath.Join(data, journalName)); err != nil {
			return got, err
		}
	}
	return got, r.end()
}

// restore is one Restore. It holds the lock from begin until Restore returns.
type restore struct {
	// data is the directory that is being made.
	data string
	// chain is cut to the backups that are used once the journal is received.
	chain []*Manifest
	o     RestoreOptions
	// makeDir makes data with a durable name: disk.MakeDir, outside of tests.
	makeDir func(name string, mode fs.FileMode) error
	// lockFile makes and locks a file: journal.LockFile, outside of tests.
	lockFile func(name string) (io.Closer, error)
	// lock is on the file restoringName.
	lock io.Closer
	// was is that file before it was locked; nil: it was not there. earlier holds it open.
	was     fs.FileInfo
	earlier io.Closer
}

// begin takes the directory, makes the mark and removes what an earlier attempt has left. The mark
// is durable before anything else is written, and its lock keeps a second restore out.
//
// Another process may finish its restore, and remove the mark, before this one has the lock. The
// lock then makes a new mark, so begin looks again.
func (r *restore) begin() error {
	if err := r.makeDir(r.data, 0o700); err != nil {
		return fmt.Errorf("backup: make dir=%s: %w", r.data, err)
	}
	mark := filepath.Join(r.data, restoringName)
	err := r.openEarlier(mark)
	if err == nil {
		err = r.refuseOthers(r.was != nil)
	}
	if err == nil {
		r.lock, err = r.lockFile(mark)
	}
	if err != nil {
		return errors.Join(err, r.closeEarlier())
	}
	if err := r.clear(mark); err != nil {
		return errors.Join(err, r.release())
	}
	return nil
}

// refuseOthers refuses a directory that a server uses, and one that holds anything but a mark and
// the file of a server's lock, unless the mark is that of an earlier attempt.
func (r *restore) refuseOthers(attempted bool) error {
	entries, err := os.ReadDir(r.data)
	if err != nil {
		return fmt.Errorf("backup: list dir=%s: %w", r.data, err)
	}
	if pid := journal.InUse(r.data); pid != 0 {
		return fmt.Errorf("backup: data.dir %s: %w, pid %d", r.data, journal.ErrLocked, pid)
	}
	if !attempted && slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return e.Name() != restoringName && e.Name() != lockName
	}) {
		return fmt.Errorf("backup: data.dir %s: %w", r.data, ErrNotEmpty)
	}
	return nil
}

// clear removes what an earlier attempt has left, with the lock held. A mark that the lock has made
// beside what is not this restore's is removed again.
func (r *restore) clear(mark string) error {
	attempted, err := r.isEarlier(mark)
	if err != nil {
		return err
	}
	if err := r.refuseOthers(attempted); err != nil {
		if e := os.Remove(mark); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("backup: %w", e))
		}
		return errors.Join(err, disk.SyncDir(r.data))
	}
	for _, name := range []string{journalName, RestoredName} {
		if err := os.RemoveAll(filepath.Join(r.data, name)); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
	}
	return disk.SyncDir(r.data)
}

// isEarlier reports whether the mark is the file that was there before it was locked.
func (r *restore) isEarlier(mark string) (bool, error) {
	if r.was == nil {
		return false, nil
	}
	is, err := os.Stat(mark)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("backup: %w", err)
	}
	return os.SameFile(r.was, is), nil
}

// release gives the lock back.
func (r *restore) release() error { return errors.Join(r.lock.Close(), r.closeEarlier()) }

// openEarlier looks at the mark of an earlier attempt. It stays open as long as the lock: closing
// any descriptor of a file ends the locks that the process has on it. While it is open no other
// file gets its number, so isEarlier can tell. On Windows a file that is open cannot be locked.
func (r *restore) openEarlier(mark string) error {
	f, err := os.Open(mark)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil:
		r.earlier = f
		r.was, err = f.Stat()
	}
	if err == nil && runtime.GOOS == "windows" {
		r.earlier, err = nil, f.Close()
	}
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return nil
}

// closeEarlier closes what openEarlier has left open.
func (r *restore) closeEarlier() error {
	if r.earlier == nil {
		return nil
	}
	return r.earlier.Close()
}

// journal receives the journal.
//
// The parts are opened as they are read. When the receiver fails, the file that it was reading is
// named in the error, with its own damage first. What was received is removed then; the mark stays.
func (r *restore) journal(got *Origin) error {
	var parts []*part
	var streams []io.Reader
	for _, m := range r.chain {
		f, ok := m.file(streamName)
		if !ok {
			return fmt.Errorf("backup: dir=%s has no %s: %w", m.dir, streamName, ErrDamaged)
		}
		p := m.open(f)
		defer p.Close()
		parts, streams = append(parts, p), append(streams, p)
		got.From = append(got.From, m.dir)
		if r.o.To > 0 && m.To.InputSeq >= r.o.To {
			break
		}
	}
	r.chain = r.chain[:len(parts)]
	into := filepath.Join(r.data, journalName)
	received, err := journal.ReceiveAll(into, r.o.To, r.o.Journal, streams...)
	for _, p := range parts {
		e := p.err()
		if e == nil && err != nil && p.bytes > 0 && !p.ended {
			e = err // it was being read
		}
		if e != nil {
			err = fmt.Errorf("backup: file=%s: %w", p.name, e)
			break
		}
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(into))
	}
	seed := sha256.Sum256(received.Genesis)
	got.Genesis = hex.EncodeToString(seed[:])
	got.InputSequence, got.TradeSequence = received.InputSeq, received.TradeSeq
	return nil
}

// leaveRows leaves what the first start needs: the rows of the newest backup that was used and has
// some. One that was made without its database must not hide the rows of those before it.
//
// origin.json is written behind the rows: a start takes the folder seriously only with it.
func (r *restore) leaveRows(got *Origin) error {
	folder := filepath.Join(r.data, RestoredName)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	for _, m := range slices.Backward(r.chain) {
		f, ok := m.file(tablesName)
		if !ok {
			continue
		}
		if err := copyRows(folder, m.open(f)); err != nil {
			return err
		}
		got.RowsFrom, got.RowsSequence = m.dir, m.To.InputSeq
		break
	}
	text, err := json.Marshal(got)
	if err == nil {
		err = putFile(filepath.Join(folder, originName), text)
	}
	if err == nil {
		err = disk.SyncDir(folder)
	}
	return err
}

// copyRows copies the rows of a backup, which are checked on the way, into a folder. Rows that turn
// out damaged end the restore, so the file is never read.
func copyRows(folder string, from *part) error {
	defer from.Close()
	w := &writing{dir: folder}
	_, err := w.file(tablesName, func(to io.Writer) error {
		_, err := io.Copy(to, from)
		return err
	})
	if err = errors.Join(err, from.err()); err != nil {
		return fmt.Errorf("backup: file=%s: %w", from.name, err)
	}
	return nil
}

// end removes the mark: from here on the directory is restored. Everything else has its name on
// stable storage before that.
func (r *restore) end() error {
	if err := disk.SyncDir(r.data); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(r.data, restoringName)); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return disk.SyncDir(r.data)
}
