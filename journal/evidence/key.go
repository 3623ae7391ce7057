package evidence

import (
	"crypto/rand"
	"encoding/base64"
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
func Origin(setting string, seed [32]byte) string {
	if setting != "" {
		return setting
	}
	return fmt.Sprintf("posttrade/%x", seed[:8])
}

// Signer signs the heads of a log.
type Signer struct {
	note.Signer
	VKey string // the public key, for verifiers
}

// LoadSigner reads the key file, or makes it when it does not exist and the name is the default one
// of the folder. file is the setting evidence.key, empty for that default. The name of the key must
// be the log's origin: a verifier looks for it.
func LoadSigner(dir, file, origin string) (*Signer, error) {
	path := filepath.Join(dir, keyName)
	if file != "" {
		path = file
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && file == "" {
		text, err = makeKey(folder{dir: dir}, origin)
	}
	if err != nil {
		return nil, fmt.Errorf("evidence: key: %w", err)
	}
	s, err := parseSigner(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("evidence: key file=%s: %w", path, err)
	}
	if s.Name() != origin {
		return nil, fmt.Errorf("evidence: key file=%s is the key of %q, the origin of this log is %q",
			path, s.Name(), origin)
	}
	return s, folder{dir: dir}.write(pubName, []byte(s.VKey+"\n"), false)
}

func makeKey(dir folder, origin string) ([]byte, error) {
	skey, _, err := note.GenerateKey(rand.Reader, origin)
	if err != nil {
		return nil, err
	}
	text := []byte(skey + "\n")
	return text, dir.write(keyName, text, true)
}

// parseSigner reads PRIVATE+KEY+<name>+<hash>+<base64 of 1 and the seed>.
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
