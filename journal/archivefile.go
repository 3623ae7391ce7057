package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// archiveName is the file that says what an archive holds; it is written last.
const archiveName = "archive.json"

// archiveText is that file: the archive, and the hash of its text. The text is kept as it was
// written, so the hash does not depend on how JSON is worded.
type archiveText struct {
	Archive json.RawMessage `json:"archive"`
	SHA256  string          `json:"sha256"`
}

// archiveBody is what it says (FORMAT.md, section 9).
type archiveBody struct {
	Format  int    `json:"format"`
	Genesis string `json:"genesis"` // hex SHA-256
	From    Point  `json:"from"`
	To      Point  `json:"to"`
	Root    string `json:"root,omitempty"`
}

// archiveFormat is the value of the member format.
const archiveFormat = 1

// archiveSum is the hash in an archive's file, if it is that of the rest. ErrCorrupt when it is
// not. The pointer in the store has the same hash, so the file of another archive is found.
func archiveSum(text []byte) (string, error) {
	var t archiveText
	if err := json.Unmarshal(text, &t); err != nil {
		return "", fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	sum := sha256.Sum256(t.Archive)
	if got := hex.EncodeToString(sum[:]); got != t.SHA256 {
		return "", fmt.Errorf("sha256 %s, want %s: %w", got, t.SHA256, errChecksum)
	}
	return t.SHA256, nil
}
