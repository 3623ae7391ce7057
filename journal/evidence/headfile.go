package evidence

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"posttrade/journal/evidence/verify"
	"posttrade/ring/disk"
)

// headFile reads the file checkpoints: every published head, one after the other. A note is two
// paragraphs, and each paragraph ends with an empty line.
//
// The heads ascend: one that covers less than the head before it contradicts. One
// goroutine uses a headFile, and closes it.
type headFile struct {
	name string
	// f is nil when there is no file
	f *os.File
	// r reads f, or nothing when there is no file
	r *bufio.Reader
	// end is the offset behind the last whole note read.
	end int64
	// note is the note that next has read; the next call takes the memory.
	note []byte
	at   verify.Checkpoint // what note says
	// n is the number of the note in the file, from 1; after toTail, from where it began.
	n int
}

// maxNote bounds a note in the file, in bytes, so that a file without empty lines is not read
// into memory as one note.
const maxNote = 1 << 20

// openHeadFile opens the file; a file that does not exist has no notes.
func openHeadFile(dir folder) (*headFile, error) {
	k := &headFile{name: dir.path(checkpointsName)}
	f, err := os.Open(k.name)
	if errors.Is(err, fs.ErrNotExist) {
		k.r = bufio.NewReader(strings.NewReader(""))
		return k, nil
	}
	if err != nil {
		return nil, fmt.Errorf("evidence: read: %w", err)
	}
	k.f, k.r = f, bufio.NewReaderSize(f, 1<<16)
	return k, nil
}

// tailBytes is how far from its end the file is read for its newest note, in bytes: a start must
// not take longer for every year that the log is kept.
const tailBytes = 1 << 16

// toTail goes on with the first note in the last part of the file, if the file is longer than that.
// A note follows an empty line behind a signature.
func (k *headFile) toTail() error {
	if k.f == nil {
		return nil
	}
	info, err := k.f.Stat()
	if err != nil || info.Size() <= tailBytes {
		return err
	}
	k.end = info.Size() - tailBytes
	if _, err := k.f.Seek(k.end, io.SeekStart); err != nil {
		return err
	}
	k.r.Reset(k.f)
	for signed := false; ; {
		line, err := k.r.ReadSlice('\n')
		if err != nil {
			break // no note ends in it: from the beginning
		}
		k.end += int64(len(line))
		if signed && len(line) == 1 {
			return nil
		}
		signed = bytes.HasPrefix(line, []byte("— "))
	}
	k.end = 0
	_, err = k.f.Seek(0, io.SeekStart)
	k.r.Reset(k.f)
	return err
}

// next reads the next whole note; false behind the last one. What follows the last whole note is
// half written.
func (k *headFile) next() (bool, error) {
	k.note = k.note[:0]
	for empty := 0; empty < 2; {
		line, err := k.r.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("evidence: file=%s behind byte %d: %w", k.name, k.end, err)
		}
		k.note = append(k.note, line...)
		if len(line) == 1 {
			empty++
		}
		if len(k.note) > maxNote {
			return false, fmt.Errorf("evidence: file=%s behind byte %d: no note: %w", k.name, k.end,
				ErrContradiction)
		}
	}
	k.end += int64(len(k.note))
	k.n++
	k.note = k.note[:len(k.note)-1]
	at, err := ParseNote(k.note)
	if err == nil && at.Head < k.at.Head {
		err = fmt.Errorf("its head %d is before the head %d of the note before", at.Head, k.at.Head)
	}
	if err != nil {
		return false, fmt.Errorf("evidence: file=%s note %d before byte %d: %v: %w", k.name, k.n, k.end,
			err, ErrContradiction)
	}
	k.at = at
	return true, nil
}

// close frees the file. There may be none.
func (k *headFile) close() {
	if k.f != nil {
		_ = k.f.Close() // it was only read
	}
}

// contradicts reports that the note differs from the journal.
func (k *headFile) contradicts(what string, got, want any) error {
	return fmt.Errorf("evidence: file=%s note %d, sequence %d: its %s is %v, the journal's is %v: %w",
		k.name, k.n, k.at.Head, what, got, want, ErrContradiction)
}

// newest is the last whole note, nil for none. It removes what is half written behind it.
//
// Only the Log calls it, at its start: another process that reads the folder must not cut the file.
// Errors: ErrContradiction for a head that does not read or goes back; those of the file system.
func newest(dir folder) (note []byte, c verify.Checkpoint, err error) {
	k, err := openHeadFile(dir)
	if err != nil {
		return nil, c, err
	}
	defer k.close()
	if err := k.toTail(); err != nil {
		return nil, c, fmt.Errorf("evidence: file=%s: %w", k.name, err)
	}
	for {
		more, err := k.next()
		if err != nil {
			return nil, c, err
		}
		if !more {
			break
		}
		note, c = append(note[:0], k.note...), k.at
	}
	if k.f == nil {
		return nil, c, nil
	}
	if info, err := k.f.Stat(); err == nil && info.Size() > k.end {
		if err := os.Truncate(k.name, k.end); err != nil {
			return nil, c, fmt.Errorf("evidence: file=%s: %w", k.name, err)
		}
	}
	return note, c, nil
}

// keep appends a note to the file, durably. A crash may leave half a note at the end, which newest
// removes; after a failed write keep removes it itself, because the next note would follow it. The
// file cannot be made again, so it is only ever appended to.
func keep(dir folder, note []byte) error {
	name := dir.path(checkpointsName)
	was, missing := os.Stat(name)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err == nil {
		err = dir.fill(f, append(append([]byte(nil), note...), '\n'))
		if err == nil {
			err = f.Sync()
		}
		if err == nil && missing != nil {
			err = disk.SyncDir(dir.dir)
		}
		if err != nil && missing == nil && dir.before() == nil {
			err = errors.Join(err, f.Truncate(was.Size()))
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("evidence: write file=%s: %w", name, err)
	}
	return nil
}

// Newest is the newest head that the log in a folder has published, zero for none. It changes
// nothing.
func Newest(dir string) (verify.Checkpoint, error) {
	_, c, err := newestReadable(dir)
	return c, err
}

// SignedNewest reports whether the key in a file has signed the newest head that the log in a
// folder has published. It changes nothing. Only the key's own signature counts: a line of another
// that no verifier accepts does not take it back.
//
// Errors: ErrKey for a file that is no key; those of the file system.
func SignedNewest(dir, keyFile string) (bool, error) {
	s, err := readSigner(keyFile)
	if err != nil {
		return false, err
	}
	text, _, err := newestReadable(dir)
	if err != nil {
		return false, err
	}
	v, err := note.NewVerifier(s.VKey)
	if err != nil {
		return false, err
	}
	_, unsigned := note.Open(text, note.VerifierList(v))
	return unsigned == nil, nil
}

// newestReadable is the newest head before the first one that does not read; zero for none.
func newestReadable(dir string) (note []byte, c verify.Checkpoint, err error) {
	k, err := openHeadFile(folder{dir: dir})
	if err != nil {
		return nil, c, err
	}
	defer k.close()
	if err := k.toTail(); err != nil {
		return nil, c, fmt.Errorf("evidence: file=%s: %w", k.name, err)
	}
	for {
		more, err := k.next()
		if err != nil && !isContradiction(err) { // that the log says itself, and the engine goes on
			return nil, c, err
		}
		if !more {
			return note, c, nil
		}
		note, c = append(note[:0], k.note...), k.at
	}
}

// Attested returns a published head of a log that names the snapshot of like, is not behind like,
// and is signed with one of the keys; nil for none. Of several it is the one with the most
// signatures, and of these the last: a head may be published before its witnesses have cosigned it.
//
// It reads the file from its beginning: linear in the heads. The caller may keep the bytes.
func Attested(dir string, like *verify.Checkpoint, keys *verify.Keys) (note []byte, err error) {
	k, err := openHeadFile(folder{dir: dir})
	if err != nil {
		return nil, err
	}
	defer k.close()
	for {
		more, err := k.next()
		if err != nil {
			return nil, err
		}
		if !more || k.at.Head > like.Head {
			return note, nil
		}
		if !k.at.Names(like) || signatures(k.note) < signatures(note) {
			continue
		}
		if _, _, err := keys.Open(k.note); err == nil {
			note = append(note[:0], k.note...)
		}
	}
}

// signatures is how many lines of signatures a note has.
func signatures(note []byte) int { return bytes.Count(note, []byte("\n— ")) }
