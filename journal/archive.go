package journal

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// keyArchive is the prefix of a pointer: what was moved out of the store, and where it is.
const keyArchive = 'a'

// ErrArchived: what is wanted was moved into an archive that cannot be read here.
var ErrArchived = errors.New("moved into an archive; name its folder with journal.archive-dir")

// blockStore is the store, with what was moved out of it. Whatever reads blocks by their sequence
// asks of for the store that has them.
type blockStore struct {
	*pebble.DB
	archives *archives     // nil: nothing was moved out
	cache    *pebble.Cache // of table blocks
}

// dropCache empties the cache of table blocks: what is read after it is read from the files. The
// next reads of other callers are, too, which costs them cacheBytes at most.
func (v *blockStore) dropCache() { v.cache.Reserve(cacheBytes)() }

// archivePointer is what the store keeps of an archive, as JSON under its key (FORMAT.md, section
// 9). With it the history behind the archive is verified without the archive.
type archivePointer struct {
	Name   string `json:"name"`           // of the folder
	From   Point  `json:"from"`           // the commit before it; zero: none
	To     Point  `json:"to"`             // its last commit
	SHA256 string `json:"sha256"`         // of the member archive of its archive.json
	Root   string `json:"root,omitempty"` // of the evidence tree over it, if there was one
}

// archives are those of a store, in order, and their stores once they have been opened. They
// follow each other from the first command on: what is behind the last is in the store.
//
// The history of a journal that was archived twice:
//
//	archive 1   archive 2   store                     tail
//	1 .. to     .. to       .. the durable head       .. answered
type archives struct {
	list []*archived
	fs   vfs.FS
	dir  string // where the archives are; "": not known
}

// archived is one archive: from is the commit before it, to its last one.
type archived struct {
	archivePointer
	from, to point

	mu sync.Mutex
	// Guarded by mu; nil until it is wanted, then open until archives.close.
	db    *blockStore
	latch *latch
}

// readArchives reads the pointers of a store; nil when nothing was moved out. It refuses pointers
// that do not follow each other, as ErrCorrupt. It opens no archive.
func readArchives(db *blockStore) (*archives, error) {
	var s *archives
	err := iterate(db, []byte{keyArchive}, []byte{keyArchive + 1}, func(it *pebble.Iterator) error {
		for ok := it.First(); ok; ok = it.Next() {
			v, err := it.ValueAndErr()
			if err != nil {
				return err
			}
			a, err := parsePointer(v)
			if err == nil && s != nil && s.end() != a.from {
				err = errSizes
			}
			if seq, ok := keySeq(it.Key()); err == nil && (!ok || seq != a.to.inputSeq) {
				err = errSizes
			}
			if err != nil {
				return fmt.Errorf("journal: key=%s: %w", keyName(it.Key()), err)
			}
			if s == nil {
				s = &archives{}
			}
			s.list = append(s.list, a)
		}
		return nil
	})
	return s, err
}

// putPointer wraps a pointer for its key, as a manifest is wrapped.
func putPointer(s archivePointer) ([]byte, error) {
	body, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	v := append(make([]byte, snapshotHeader), body...)
	v[0] = snapshotVersion
	binary.LittleEndian.PutUint32(v[4:], crc32.Checksum(body, castagnoli))
	return v, nil
}

// parsePointer is the inverse of putPointer. Errors are ErrCorrupt.
func parsePointer(v []byte) (*archived, error) {
	if len(v) < snapshotHeader || v[0] != snapshotVersion || v[1]|v[2]|v[3] != 0 {
		return nil, errVersion
	}
	body := v[snapshotHeader:]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(v[4:]) {
		return nil, errChecksum
	}
	a := &archived{}
	err := json.Unmarshal(body, &a.archivePointer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSizes, err)
	}
	a.from, a.to = a.From.point(), a.To.point()
	return a, nil
}

// end is the last commit that was moved out; the zero point for none.
func (s *archives) end() point {
	if s == nil || len(s.list) == 0 {
		return point{}
	}
	return s.list[len(s.list)-1].to
}

// locate says where the archives are. Until it is called, and with dir "", reading an archive is
// ErrArchived.
func (s *archives) locate(fs vfs.FS, dir string) {
	if s != nil {
		s.fs, s.dir = fs, dir
	}
}

// close closes the archives that were opened. No read of one may be under way.
func (s *archives) close() {
	if s == nil {
		return
	}
	for _, a := range s.list {
		a.mu.Lock()
		if a.db != nil {
			_ = closeStore(a.db, a.latch) // only read: nothing to lose
			a.db = nil
		}
		a.mu.Unlock()
	}
}

// of returns the store that has a sequence of a kind: the archive's, and its last commit, or the
// store itself. seq is a tradeSeq for keyFills, otherwise an inputSeq. It opens the archive if need
// be, which blocks; ErrArchived when it cannot.
func (v *blockStore) of(kind byte,
	seq uint64) (db *blockStore, end point, archive bool, err error) {
	if v.archives == nil {
		return v, end, false, nil
	}
	for _, a := range v.archives.list {
		last := a.to.inputSeq
		if kind == keyFills {
			last = a.to.tradeSeq
		}
		if seq <= last {
			db, err := a.open(v.archives)
			return db, a.to, true, err
		}
	}
	return v, end, false, nil
}

// ended returns the commit that ends at a sequence, when that is the end of an archive. So the
// history behind an archive can be read and verified without it.
func (s *archives) ended(inputSeq uint64) (point, bool) {
	if s != nil {
		for _, a := range s.list {
			if a.to.inputSeq == inputSeq {
				return a.to, true
			}
		}
	}
	return point{}, false
}

// open opens the archive's store for reading, once. ErrArchived: the folder is not known or not
// there; ErrDiverged: what is there is another archive than the pointer names. Any goroutine.
func (a *archived) open(s *archives) (*blockStore, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.db != nil {
		return a.db, nil
	}
	missing := func(err error) error {
		return fmt.Errorf("journal: commands %d to %d are in the archive %s: %w", a.from.inputSeq+1,
			a.to.inputSeq, a.Name, err)
	}
	if s.dir == "" {
		return nil, missing(ErrArchived)
	}
	folder := s.fs.PathJoin(s.dir, a.Name)
	text, err := readWhole(s.fs, s.fs.PathJoin(folder, archiveName))
	if err != nil {
		return nil, missing(fmt.Errorf("%w: %w", ErrArchived, err))
	}
	body, sum, err := readArchiveFile(text)
	if err == nil && sum != a.SHA256 {
		err = fmt.Errorf("file=%s: sha256 %s, want %s: %w", s.fs.PathJoin(folder, archiveName), sum,
			a.SHA256,
			ErrDiverged)
	}
	if err != nil {
		return nil, missing(err)
	}
	db, latch, err := openArchive(s.fs, folder)
	if err != nil {
		return nil, missing(err)
	}
	if err := sameGenesis(db, body.Genesis); err != nil {
		return nil, missing(errors.Join(err, closeStore(db, latch)))
	}
	a.db, a.latch = db, latch
	return db, nil
}

// sameGenesis compares an archive's copy of the genesis with the hash in hex that the archive's
// file has. ErrCorrupt when there is none, ErrDiverged when it is another one.
func sameGenesis(db *blockStore, want string) error {
	genesis, err := readGenesis(db)
	if errors.Is(err, ErrNoGenesis) {
		err = fmt.Errorf("key=g is not there: %w", errSizes) // the journal has one
	}
	if err != nil {
		return err
	}
	if seed := fmt.Sprintf("%x", hashOf(genesis)); seed != want {
		return fmt.Errorf("key=g: genesis hash %s, want %s: %w", seed, want, ErrDiverged)
	}
	return nil
}

// openArchive opens the store of an archive for reading. It has a latch of its own: an archive's
// failure does not end the journal.
func openArchive(fs vfs.FS, folder string) (*blockStore, *latch, error) {
	latch := newLatch(func(error) {})
	o := storeOptions(unlocked{fs}, latch, discardLogger{})
	o.ReadOnly, o.ErrorIfNotExists = true, true
	db, err := openStore(fs.PathJoin(folder, storeName), o, latch)
	return db, latch, err
}

// Archives returns ErrArchived, with the archive's name, when a part of the history was moved into
// an archive that cannot be read. It opens the first archive only.
func (j *Journal) Archives() error {
	if j.db == nil {
		return nil // a new journal
	}
	_, _, _, err := j.db.of(keyCommands, 1)
	return err
}

// unlocked is a file system without locks: any number of processes read an archive, also from a
// place where none may write.
type unlocked struct{ vfs.FS }

func (unlocked) Lock(string) (io.Closer, error) { return noLock{}, nil }

// Unwrap returns the file system below.
func (u unlocked) Unwrap() vfs.FS { return u.FS }
