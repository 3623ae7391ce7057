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

// readArchiveFile returns what an archive's file says and its hash, if that is of the rest.
// ErrCorrupt when it is not. The pointer in the store has the same hash, so the file of another
// archive is found.
func readArchiveFile(text []byte) (body archiveBody, sum string, err error) {
	var t archiveText
	if err := json.Unmarshal(text, &t); err != nil {
		return body, "", fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	of := sha256.Sum256(t.Archive)
	if got := hex.EncodeToString(of[:]); got != t.SHA256 {
		return body, "", fmt.Errorf("sha256 %s, want %s: %w", got, t.SHA256, errChecksum)
	}
	if err := json.Unmarshal(t.Archive, &body); err != nil {
		return body, "", fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return body, t.SHA256, nil
}
