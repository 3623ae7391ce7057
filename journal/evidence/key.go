package evidence

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"crypto/ed25519"

	"golang.org/x/mod/sumdb/note"
)

// Origin is the name of a log: the setting, or the default that follows from the genesis.
//
// seed is the SHA-256 of the genesis record; the default has its first 8 bytes in hex.
func Origin(setting string, seed [32]byte) string {
	if setting != "" {
		return setting
	}
	return fmt.Sprintf(ofGenesis+"%x", seed[:8])
}

// ofGenesis begins the default name of a log.
const ofGenesis = "posttrade/"

// OfGenesis reports whether a name looks like a default one, which follows from a genesis.
func OfGenesis(origin string) bool {
	seed, found := strings.CutPrefix(origin, ofGenesis)
	_, err := hex.DecodeString(seed)
	return found && err == nil && len(seed) == 16
}

// Signer signs the heads of a log with Ed25519, as a C2SP signed note.
type Signer struct {
	// Signer holds the private key; it leaves the process in no answer.
	note.Signer
	// VKey is the public key as text, for verifiers: name, hash of the key, and the key.
	VKey string
}

// ErrKey says that a file is no key, or the key of another log.
var ErrKey = errors.New("cannot sign this log")

// LoadSigner reads the key file, or makes it when it does not exist and the name is the default one
// of the folder. file is the setting evidence.key, empty for that default. The name of the key must
// be the log's origin: a verifier looks for it.
//
// It writes log.pub too, where that file does not say the same. A new key is another log to an
// auditor, so a key that is named by a setting is never made: a path that is wrong must not pass
// for a first start.
func LoadSigner(dir, file, origin string) (*Signer, error) {
	path := filepath.Join(dir, keyName)
	if file != "" {
		path = file
	}
	s, err := readSigner(path)
	if errors.Is(err, fs.ErrNotExist) && file == "" {
		if err = makeKey(folder{dir: dir}, origin); err == nil {
			s, err = readSigner(path)
		}
	}
	if err != nil {
		return nil, err
	}
	if s.Name() != origin {
		return nil, fmt.Errorf("evidence: key file=%s: %w: it is the key of %q, the origin is %q", path,
			ErrKey, s.Name(), origin)
	}
	public := []byte(s.VKey + "\n")
	if was, err := os.ReadFile(filepath.Join(dir, pubName)); err == nil && bytes.Equal(was, public) {
		return s, nil // also where nothing may be written
	}
	return s, folder{dir: dir}.write(pubName, public, false)
}

// readSigner reads a key file. Errors: ErrKey for a file that is no key; those of the file system.
func readSigner(path string) (*Signer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("evidence: key: %w", err)
	}
	s, err := parseSigner(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("evidence: key file=%s: %w: %w", path, ErrKey, err)
	}
	return s, nil
}

// makeKey makes a key and brings it to stable storage before it signs anything. The file has mode
// 0600.
func makeKey(dir folder, origin string) error {
	skey, _, err := note.GenerateKey(rand.Reader, origin)
	if err != nil {
		return fmt.Errorf("evidence: key: %w", err)
	}
	return dir.write(keyName, []byte(skey+"\n"), true)
}

// parseSigner reads PRIVATE+KEY+<name>+<hash>+<base64 of 1 and the seed>. The 1 is the number of
// Ed25519 in signed notes. The public key is computed, because the text has only the private one.
func parseSigner(text string) (*Signer, error) {
	s, err := note.NewSigner(text)
	if err != nil {
		return nil, err
	}
	fields := strings.SplitN(text, "+", 5)
	raw, err := base64.StdEncoding.DecodeString(fields[4])
	if err != nil || len(raw) != 1+ed25519.SeedSize {
		return nil, errors.New("not the key of a note signer")
	}
	public := ed25519.NewKeyFromSeed(raw[1:]).Public().(ed25519.PublicKey)
	vkey, err := note.NewEd25519VerifierKey(s.Name(), public)
	return &Signer{Signer: s, VKey: vkey}, err
}
