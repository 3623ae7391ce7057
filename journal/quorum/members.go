package quorum

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/raft"
)

// ErrMembers reports a list of members that cannot be used.
var ErrMembers = errors.New("invalid members")

// Member is one of the cluster's processes, as the settings name it. Addresses are hosts by name or
// number, with a port.
type Member struct {
	ID   string // a number, 1 to 255
	Raft string // host:port where members talk to each other
	HTTP string // host:port of its order-matcher
}

// ParseMembers reads `1=host:raftport@host:httpport,2=...`. The list is in the order of the
// numbers. Two members must share no number and no address. Errors are ErrMembers.
func ParseMembers(text string) (members []Member, err error) {
	for item := range strings.SplitSeq(text, ",") {
		m, err := ParseMember(strings.TrimSpace(item))
		if err != nil {
			return nil, err
		}
		for _, other := range members {
			if other.ID == m.ID || other.Raft == m.Raft || other.HTTP == m.HTTP {
				return nil, fmt.Errorf("member %q repeats %q: %w", item, other.ID, ErrMembers)
			}
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b Member) int { return number(a.ID) - number(b.ID) })
	return members, nil
}

// ParseMember reads `1=host:raftport@host:httpport`.
func ParseMember(text string) (m Member, err error) {
	id, rest, ok := strings.Cut(text, "=")
	raftAddress, httpAddress, both := strings.Cut(rest, "@")
	if !ok || !both {
		return m, fmt.Errorf("member %q is not number=host:port@host:port: %w", text, ErrMembers)
	}
	if number(id) == 0 {
		return m, fmt.Errorf("member %q: the number is not 1 to 255: %w", text, ErrMembers)
	}
	for _, address := range []string{raftAddress, httpAddress} {
		host, port, err := net.SplitHostPort(address)
		n, bad := strconv.ParseUint(port, 10, 16)
		if err != nil || host == "" || bad != nil || n == 0 || strings.ContainsAny(host, "/ ") {
			return m, fmt.Errorf("member %q: %q is not host:port: %w", text, address, ErrMembers)
		}
	}
	return Member{ID: id, Raft: raftAddress, HTTP: httpAddress}, nil
}

// number is a member's number, 0 if the text is none. Only the shortest form of a number is one:
// "01" is another text for the same member.
func number(id string) int {
	n, err := strconv.ParseUint(id, 10, 8)
	if err != nil || strconv.Itoa(int(n)) != id {
		return 0
	}
	return int(n)
}

// A server of the consensus library is one life of a member's disk: the member's number, a dot, and
// digits drawn when the disk was empty. A member that has lost its disk comes back as another
// server, so that no member counts on what it has forgotten.

// memberOf is the member that a server is a life of.
func memberOf(id raft.ServerID) string {
	member, _, _ := strings.Cut(string(id), ".")
	return member
}

// The library knows a server by an address alone. The addresses here end in the server's id, so
// that the disk that replaced a lost one never answers what is meant for the lost one.

// addressOf is where a server listens, with the server's id.
func addressOf(hostPort string, id raft.ServerID) raft.ServerAddress {
	return raft.ServerAddress(hostPort + "/" + string(id))
}

// hostPortOf undoes addressOf.
func hostPortOf(a raft.ServerAddress) (hostPort string, id raft.ServerID) {
	hostPort, text, _ := strings.Cut(string(a), "/")
	return hostPort, raft.ServerID(text)
}
