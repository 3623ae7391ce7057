package settings

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"posttrade/matcher/gate"
)

// maxSecretBytes bounds how much of a secret file is read.
//
// A larger file is a mistake of the operator, such as the path of another file.
const maxSecretBytes = 4096

// secretFile returns the secret in the file at path, without surrounding white space. If there is
// no such file, it makes one of 64 random hex digits that only its owner may read. When several
// processes do so at once, one file wins, and all of them return its secret.
//
// It refuses a file that others may read, that the group may write, that is no regular file, or
// that holds fewer than gate.MinSecretBytes.
//
// Its errors are no UsageErrors: a command ends with exit code 1.
func secretFile(path string) ([]byte, error) {
	secret, err := readSecret(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	if err := makeSecret(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("secret: make %s: %w", path, Cause(err))
	}
	return readSecret(path)
}

// readSecret reads a file of one secret, without the white space around it.
func readSecret(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("secret: read %s: %w", path, Cause(err))
	}
	defer f.Close()
	if err := checkSecretFile(f, path); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, maxSecretBytes+1))
	if err != nil {
		return nil, fmt.Errorf("secret: read %s: %w", path, Cause(err))
	}
	if bytes.HasPrefix(content, []byte("\ufeff")) { // it would be a part of the secret, unseen
		return nil, fmt.Errorf("secret: %s begins with a byte order mark: save it without one", path)
	}
	content = bytes.TrimSpace(content)
	if len(content) < gate.MinSecretBytes || len(content) > maxSecretBytes {
		return nil, fmt.Errorf("secret: %s holds %d bytes, want %d to %d",
			path, len(content), gate.MinSecretBytes, maxSecretBytes)
	}
	return content, nil
}

// checkSecretFile wants a regular file that only its owner and group can read.
//
// The open file is checked, and not the path, so that it cannot be exchanged between check and
// read. The bits refused are those of all others, and of writing by the group: a group may read.
func checkSecretFile(f *os.File, path string) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("secret: read %s: %w", path, Cause(err))
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("secret: %s is not a regular file", path)
	}
	if perm := info.Mode().Perm(); perm&0o027 != 0 {
		return &openSecret{path, perm}
	}
	return nil
}

// openSecret is a secret's file that others may read or change. It is an fs.ErrPermission: the
// operator mends it in the same way.
type openSecret struct {
	path string
	perm fs.FileMode
}

// Error implements error.
func (e *openSecret) Error() string {
	return fmt.Sprintf("secret: %s has mode %04o, others can get at it: chmod 600", e.path, e.perm)
}

// Is makes errors.Is find fs.ErrPermission.
func (e *openSecret) Is(target error) bool { return target == fs.ErrPermission }

// makeSecret writes a new secret under another name and links it into place, so that a reader never
// sees half of it.
//
// The name under which it is written is new, with mode 0600. The link fails when another process
// was first: the caller then reads the other's.
func makeSecret(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var key [32]byte
	rand.Read(key[:]) // never fails
	f, err := os.CreateTemp(dir, ".secret-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(hex.EncodeToString(key[:]) + "\n")
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Link(f.Name(), path)
	}
	return err
}
