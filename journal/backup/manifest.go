package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"posttrade/journal"
)

// The files of a backup.
//
// FORMAT.md, section 8, has their bytes. lockName stays in the directory; what counts is the lock
// on it, which ends with the process.
const (
	manifestName   = "backup.json"
	streamName     = "journal.stream"
	tablesName     = "tables.ndjson"
	unfinishedName = "unfinished"
	lockName       = journal.LockName
)

// The errors of a directory; test them with errors.Is.
var (
	// ErrNone: the directory holds no backup.
	ErrNone = errors.New("there is no backup")
	// ErrUnfinished: a backup into the directory was not finished.
	ErrUnfinished = errors.New("the backup was not finished: make it again")
	// ErrDamaged: what is in the directory is not what was written.
	ErrDamaged = errors.New("the backup is damaged")
	// ErrExists: the directory holds a finished backup, which is never changed.
	ErrExists = errors.New("there is a backup already")
	// ErrNotEmpty: the directory holds something else.
	ErrNotEmpty = errors.New("the directory is not empty")
	// ErrChain: the directories do not follow each other.
	ErrChain = errors.New("not a chain of backups")
)

// Manifest says what a directory holds. Read and Write make it. Its JSON is the member backup of
// the manifest's file, so names and order of the fields are part of the format.
type Manifest struct {
	// Format is manifestFormat. Created is when the backup was finished, UTC, whole seconds.
	Format  int       `json:"format"`
	Created time.Time `json:"created"`
	Build   string    `json:"build,omitempty"`
	Genesis string    `json:"genesis"` // hex SHA-256 of the genesis record
	// From is the commit that the stream goes on from, To the last one in it. A From of zero
	// sequences: the stream begins with the first command.
	From journal.Point `json:"from"`
	To   journal.Point `json:"to"`
	Base string        `json:"base,omitempty"` // hex SHA-256 of the manifest of the one before
	// FirstTime and LastTime are event times of the commands, epoch milliseconds; 0: none has one.
	FirstTime int64  `json:"firstTime"`
	LastTime  int64  `json:"lastTime"`
	Snapshot  uint64 `json:"snapshot"` // the sequence of the snapshot in it; 0: none
	// Files are all files that belong to the backup, with what to verify them by.
	Files    []File `json:"files"`
	NoTables string `json:"noTables,omitempty"` // why there are no rows of SQL

	// sum is the hex SHA-256 of the manifest's text: the Base of a backup that goes on from this one.
	sum string
	// dir is where it was read or written.
	dir string
}

// File is one file of a backup: its name in the directory, its size, and the hex SHA-256 of its
// bytes.
type File struct {
	// Name is without a folder: all files lie in the directory itself.
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// sealed is the manifest's file: the manifest, and the hex SHA-256 of its text as it stands there.
// It finds damage; it does not prove where the backup comes from.
type sealed struct {
	Backup json.RawMessage `json:"backup"`
	SHA256 string          `json:"sha256"`
}

// manifestFormat changes when an older build could not read the manifest.
const manifestFormat = 1

// seedOf reads a genesis hash; "" reads as zero, which CheckStream takes for any journal.
func seedOf(text string) (seed [sha256.Size]byte, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 0 && len(b) != len(seed) {
		return seed, fmt.Errorf("backup: genesis %q: %w", text, ErrDamaged)
	}
	copy(seed[:], b)
	return seed, nil
}

// Dir is the directory that the manifest was read from.
func (m *Manifest) Dir() string { return m.dir }

// file returns what the manifest says of a file.
func (m *Manifest) file(name string) (File, bool) {
	for _, f := range m.Files {
		if f.Name == name {
			return f, true
		}
	}
	return File{}, false
}

// marshal is the text of the manifest's file: one line, the same bytes for the same manifest.
func (m *Manifest) marshal() ([]byte, error) {
	inner, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(inner)
	text, err := json.Marshal(sealed{inner, hex.EncodeToString(sum[:])})
	return append(text, '\n'), err
}

// parse is the inverse of marshal. A text that marshal would not write is damaged.
//
// So an unknown member is found, which a decoder would pass over. Errors: ErrDamaged; a format of a
// newer build has no sentinel.
func parse(text []byte) (*Manifest, error) {
	var s sealed
	var m Manifest
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	sum := sha256.Sum256(s.Backup)
	if m.sum = hex.EncodeToString(sum[:]); m.sum != s.SHA256 {
		return nil, fmt.Errorf("sha256 %s, want %s: %w", m.sum, s.SHA256, ErrDamaged)
	}
	d := json.NewDecoder(bytes.NewReader(s.Backup))
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if m.Format != manifestFormat {
		return nil, fmt.Errorf("format %d, want %d: made by a newer build", m.Format, manifestFormat)
	}
	if again, err := m.marshal(); err != nil || !bytes.Equal(again, text) {
		return nil, fmt.Errorf("its text is not as it was written: %w", ErrDamaged)
	}
	return &m, nil
}

// Read reads the manifest of a backup. It does not look at the other files: Verify does.
//
// Errors: ErrNone, ErrUnfinished, ErrDamaged; those of the file system.
func Read(dir string) (*Manifest, error) {
	name := filepath.Join(dir, manifestName)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if _, e := os.Stat(filepath.Join(dir, unfinishedName)); e == nil {
			return nil, fmt.Errorf("backup: dir=%s: %w", dir, ErrUnfinished)
		}
		return nil, fmt.Errorf("backup: dir=%s: %w", dir, ErrNone)
	}
	if err != nil {
		return nil, fmt.Errorf("backup: read file=%s: %w", name, err)
	}
	m, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("backup: read file=%s: %w", name, err)
	}
	m.dir = dir
	return m, nil
}
