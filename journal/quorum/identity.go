package quorum

import (
	"crypto/sha256"
	"fmt"
	"regexp"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"posttrade/journal"
)

// identityName is the file of this disk's server id.
const identityName = "identity"

// identityText is the file's content. A build that takes the whole content for the id finds no
// member's number at its beginning, and refuses the start.
func identityText(id raft.ServerID) []byte {
	return fmt.Appendf(nil, "server %s\nsha256 %x\n", id, sha256.Sum256([]byte(id)))
}

// plainIdentity is the content of the file without a checksum, as older builds have written it.
var plainIdentity = regexp.MustCompile(`^[1-9][0-9]*\.[0-9a-f]{16}$`)

// ReadIdentity is the server id of the disk whose consensus state is in dir. The error is
// ErrIdentity when the file does not hold; fs.ErrNotExist when there is none.
func ReadIdentity(dir string) (id string, err error) {
	id, _, err = readIdentity(vfs.Default, dir)
	return id, err
}

// readIdentity is ReadIdentity. plain reports that the file has no checksum.
func readIdentity(fs vfs.FS, dir string) (id string, plain bool, err error) {
	path := fs.PathJoin(dir, identityName)
	text, err := readFile(fs, path)
	if err != nil {
		return "", false, fmt.Errorf("quorum: identity: %w", err)
	}
	if plainIdentity.Match(text) {
		return string(text), true, nil
	}
	var sum string
	_, err = fmt.Sscanf(string(text), "server %s\nsha256 %s\n", &id, &sum)
	if err != nil || string(text) != string(identityText(raft.ServerID(id))) {
		return "", false, fmt.Errorf("quorum: file=%s: %w", path, ErrIdentity)
	}
	return id, false, nil
}

// identity is this disk's server id, drawn when the disk was empty and durable before it is used.
// The file of another member is refused with ErrOtherMember: two members with one identity would
// vote twice. A file without a checksum gets one.
func (n *Node) identity() (raft.ServerID, error) {
	text, plain, err := readIdentity(n.o.FS, n.o.Dir)
	id := raft.ServerID(text)
	switch {
	case oserror.IsNotExist(err):
		id = newServerID(n.o.Member)
	case err != nil:
		return "", err
	case memberOf(id) != n.o.Member:
		return "", fmt.Errorf("quorum: this data directory is that of member %q: %w", memberOf(id),
			ErrOtherMember)
	case !plain:
		return id, nil
	}
	if err := journal.ReplaceFile(n.o.FS, n.o.Dir, identityName, identityText(id)); err != nil {
		return "", fmt.Errorf("quorum: identity: %w", err)
	}
	return id, nil
}
