package evidence

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"posttrade/journal/evidence/verify"
)

// MemberTree is what a member of a cluster says of its tree.
//
// It is the JSON of GET /log/member: hashes only, so it needs no token.
//
// For example:
//
//	{"size":3908,"root":"<base64>","snapshots":[{"sequence":999936,"sha256":"<hex>"}]}
type MemberTree struct {
	Size uint64 `json:"size"` // leaves of its tree, or fewer if it was asked for fewer
	// Root is the root of that many leaves, in base64.
	Root      string           `json:"root"`
	Snapshots []MemberSnapshot `json:"snapshots"`
}

// MemberSnapshot is the state of a member at a sequence: the hex SHA-256 of the snapshot's file.
// Only snapshots of sequences that both members have are compared.
type MemberSnapshot struct {
	InputSeq uint64 `json:"sequence"`
	SHA256   string `json:"sha256"`
}

// MemberTree is what this member says of its first leaves, at most size of them; 0: of all.
//
// ErrNotYet before the first step of Run. Any goroutine: it reads the published copy of the tree.
func (l *Log) MemberTree(size uint64) (MemberTree, error) {
	edge := l.edge.Load()
	if edge == nil {
		return MemberTree{}, fmt.Errorf("evidence: no tree: %w", ErrNotYet)
	}
	if size == 0 || size > edge.Size {
		size = edge.Size
	}
	root, err := l.rootAt(edge, size)
	if err != nil {
		return MemberTree{}, err
	}
	s := MemberTree{Size: size, Root: base64.StdEncoding.EncodeToString(root[:]),
		Snapshots: []MemberSnapshot{}}
	list, err := l.j.Snapshots()
	for i := range list {
		s.Snapshots = append(s.Snapshots, MemberSnapshot{list[i].InputSeq, list[i].State.SHA256})
	}
	return s, err
}

// rootAt is the root of the first leaves of a tree. What is in no file yet comes from the tree's
// edge.
func (l *Log) rootAt(edge *verify.Tree, size uint64) (verify.Hash, error) {
	if size == edge.Size {
		return edge.Root(), nil
	}
	head := verify.Checkpoint{Size: edge.Size, Root: edge.Root()}
	hashes := verify.NewTiles(&head, func(name string) ([]byte, error) {
		level, n, w, _ := verify.ParseTile(name)
		if data, ok := edge.Edge(level, n, w); ok {
			return data, nil
		}
		return l.dir.tile(level, n, w)
	})
	root, err := tlog.TreeHash(int64(size), hashes)
	if err != nil {
		return verify.Hash{}, fmt.Errorf("evidence: root of %d leaves: %w", size, err)
	}
	return verify.Hash(root), nil
}

// Peer is another member of the cluster.
type Peer struct {
	// Name is what State.Differs calls it.
	Name string
	URL  string // of its order-matcher
}

// Peers compares this member's tree and snapshots with the other members'. Its log follows the same
// agreed commands, so a difference is a fault of disk, memory or program.
//
// One goroutine calls Run. Log, Others and Client do not change.
type Peers struct {
	Log *Log
	// Others are all members but this one.
	Others []Peer
	// Client carries the requests to the members; each has a bound on its time (askTimeout).
	Client *http.Client
	// Odd is told, in every round from the first one on, that this member differs from a majority.
	Odd func(error)

	known map[string]bool   // differences that have been counted
	where map[string]string // by the name of a member: where it differed when it last answered
	odd   error             // what Odd is told
}

// Run compares in every interval until ctx ends. Each round asks the members one after another.
func (p *Peers) Run(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.round(ctx)
		}
	}
}

// round asks every other member. One that does not answer, because it is away, stands aside or is
// still building its tree, is shown as it was when it last did, and is not counted.
//
// A member that differs from a majority of the members is itself the odd one, and stops its log. It
// goes on comparing, and Odd is told in each later round, until it is heard.
func (p *Peers) round(ctx context.Context) {
	if p.known == nil {
		p.known, p.where = map[string]bool{}, map[string]string{}
	}
	var differ []string
	answered := 0 // of those that differ
	for _, o := range p.Others {
		where, err := p.compare(ctx, o)
		switch {
		case err != nil:
			where = p.where[o.Name]
		case where != "":
			answered++
		}
		if p.where[o.Name] = where; where != "" {
			differ = append(differ, fmt.Sprintf("member %s at %s", o.Name, where))
		}
	}
	p.Log.change(func(s *State) {
		s.Differs = differ
		for _, d := range differ {
			if !p.known[d] {
				p.known[d] = true
				s.Divergences++
			}
		}
	})
	if answered > (len(p.Others)+1)/2 && p.odd == nil {
		err := fmt.Errorf("evidence: this member differs from %s: %w", strings.Join(differ, ", "),
			ErrContradiction)
		p.Log.change(func(s *State) {
			if s.Err == nil { // a log that has stopped keeps its reason
				s.Err = err
			}
			s.late()
		})
		p.Log.o.Alarm(err)
		p.odd = err
	}
	if p.odd != nil {
		p.Odd(p.odd)
	}
}

// compare returns the first difference from another member, "" for none.
//
// The first leaf that differs is found by halving: about as many questions as the size has bits.
// Two members may have come to different sizes; the smaller one counts.
func (p *Peers) compare(ctx context.Context, o Peer) (where string, err error) {
	own, err := p.Log.MemberTree(0)
	if err != nil {
		return "", err
	}
	other, err := p.ask(ctx, o, own.Size)
	if err != nil {
		return "", err
	}
	for _, s := range own.Snapshots {
		i := slices.IndexFunc(other.Snapshots, func(t MemberSnapshot) bool {
			return t.InputSeq == s.InputSeq
		})
		if i >= 0 && other.Snapshots[i].SHA256 != s.SHA256 {
			where = fmt.Sprintf("the snapshot of sequence %d", s.InputSeq)
		}
	}
	same, err := p.same(other)
	if err != nil || same {
		return where, err
	}
	// The trees of the first low leaves are the same, those of the first high leaves differ.
	low, high := uint64(0), other.Size
	for high-low > 1 {
		middle := low + (high-low)/2
		if other, err = p.ask(ctx, o, middle); err != nil {
			return "", err
		}
		if same, err = p.same(other); err != nil || other.Size != middle {
			return "", errors.Join(err, errMoved)
		}
		if same {
			low = middle
		} else {
			high = middle
		}
	}
	first, count := verify.LeafRange(low)
	return fmt.Sprintf("leaf %d, sequences %d to %d", low, first, first+count-1), nil
}

// errMoved ends a comparison: it says nothing about a difference. The next round begins again.
var errMoved = errors.New("evidence: the other member has another tree than before")

// same reports that this member's first leaves have the root that another one says.
func (p *Peers) same(other MemberTree) (bool, error) {
	own, err := p.Log.MemberTree(other.Size)
	return own.Size == other.Size && own.Root == other.Root || other.Size == 0, err
}

// askTimeout bounds a question to another member.
const askTimeout = 5 * time.Second

// ask is one question, with a bound on time and on the size of the answer.
func (p *Peers) ask(ctx context.Context, o Peer, size uint64) (other MemberTree, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("%s/log/member?size=%d", o.URL, size), nil)
	if err != nil {
		return other, err
	}
	answer, err := p.Client.Do(r)
	if err != nil {
		return other, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return other, fmt.Errorf("evidence: member %s answers %d", o.Name, answer.StatusCode)
	}
	err = json.NewDecoder(io.LimitReader(answer.Body, maxWitnessBody)).Decode(&other)
	return other, err
}
