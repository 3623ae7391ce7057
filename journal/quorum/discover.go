package quorum

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// How often a member that does not take part yet looks for the others, how often one that has had a
// vote looks whether it is spared, and how long one question may take.
const (
	joinPause   = 100 * time.Millisecond
	sparedPause = time.Second
	askTimeout  = 2 * time.Second
)

// promoteWithin is how many entries a new member may lack when it gets its vote: with a vote and
// far behind it would count for a majority, and could not help to make one.
const promoteWithin = 256

// The questions that members put to each other.
const (
	askStatus = "status"
	askJoin   = "join"
	askSpare  = "spare"

	// Changes by an operator. A leader that knows these names puts what it changes on record.
	askAdd    = "record-add"
	askRemove = "record-remove"
	// The same from the command line of an older build, which leaders of older builds take without a
	// record.
	askAddPlain    = "add"
	askRemovePlain = "remove"
)

// question is what one member, or the command line, asks another member. JSON: a member of another
// build passes over fields that it does not know.
type question struct {
	// One of the names above.
	Ask     string `json:"ask"`
	Member  string `json:"member,omitempty"`
	Server  string `json:"server,omitempty"`  // askJoin, askSpare: the id of the asking disk
	Address string `json:"address,omitempty"` // askJoin: where it listens; askAdd: of the member
	Applied uint64 `json:"applied,omitempty"` // askJoin: how far it has come
	Subject string `json:"subject,omitempty"` // askAdd, askRemove: the operator, and why
	Reason  string `json:"reason,omitempty"`
	// askSpare: the bytes that its disk has room for; 0: it does not say
	Room uint64 `json:"room,omitempty"`
}

// Status is what a member knows of the cluster and of itself, and the answer to every question.
type Status struct {
	Member string `json:"member"`
	// The id of its disk; Role and Leader as this member sees them.
	Server string `json:"server"`
	Role   string `json:"role"` // as the consensus library names it
	Leader string `json:"leader"`
	Term   uint64 `json:"term"`
	Last   uint64 `json:"last"` // index of the log's last entry
	// The term of that entry, which another member may have left behind in its own log; 0: a build
	// that does not say.
	LastTerm uint64   `json:"lastTerm,omitempty"`
	Applied  uint64   `json:"applied"` // index
	Servers  []Server `json:"servers"` // empty: it does not take part yet
	// Of the leader: members that were added and have not come; without ids.
	Expected []Server `json:"expected,omitempty"`
	Refusal  string   `json:"refusal,omitempty"`
	Damaged  bool     `json:"damaged,omitempty"` // a part of its journal cannot be read
	Full     bool     `json:"full,omitempty"`    // its disk has no room for more commands
	Sequence uint64   `json:"sequence"`          // of the last command that the journal has

	// Where this member's services listen, by their names; empty until it has a host.
	Services map[string]string `json:"services,omitempty"`
}

// Server is one line of the cluster's configuration: a disk that takes part. A Server without a
// vote is catching up, or is spared.
type Server struct {
	ID      string `json:"id"`
	Member  string `json:"member"`
	Address string `json:"address"`
	Voter   bool   `json:"voter"`
}

// Progress is the part of Status that costs nothing to read. Any goroutine.
func (n *Node) Progress() Status {
	return Status{
		Member: n.o.Member, Server: string(n.id), Role: n.raft.State().String(),
		Term: n.raft.CurrentTerm(),
		Last: n.raft.LastIndex(), LastTerm: n.log.endTerm(), Applied: n.raft.AppliedIndex(),
	}
}

// Status is the cluster as this member sees it, which may be out of date. Any goroutine.
func (n *Node) Status() Status {
	s := n.Progress()
	s.Damaged = n.o.Damaged()
	_, leader := n.raft.LeaderWithID()
	s.Leader = memberOf(leader)
	select {
	case <-n.attached:
		s.Sequence, s.Services, s.Full = n.host.Head(), n.o.Services(), n.host.Full()
	default:
	}
	for _, server := range n.servers() {
		s.Servers = append(s.Servers, *lineOf(server))
	}
	s.Expected = n.admits.list()
	return s
}

// Voteless names the members of a list that have no vote: they have not come yet, are catching up,
// were removed, or are spared.
func (s *Status) Voteless(list []Member) (members []string) {
	for _, m := range list {
		votes := func(s Server) bool { return s.Member == m.ID && s.Voter }
		if !slices.ContainsFunc(s.Servers, votes) {
			members = append(members, m.ID)
		}
	}
	return members
}

// Voteless names the members of this one's list that have no vote, as it knows it. Any goroutine.
func (n *Node) Voteless() []string {
	s := n.Status()
	return s.Voteless(n.o.Members)
}

// servers returns a copy of the latest configuration, empty before this member has one. It copies
// because the library gives out its own memory.
func (n *Node) servers() []raft.Server {
	f := n.raft.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	return slices.Clone(f.Configuration().Servers)
}

// join brings a member with an empty disk into the cluster: it asks the others until it is part of
// the cluster, and then until it has its vote. A disk that was spared asks again when the damage
// has gone away. While its journal is damaged it does not: it is about to be replaced. One that was
// removed asks for nothing. One that has a vote and no leader finds out whether the others still
// count it. On a goroutine of its own.
func (n *Node) join() {
	said, pause, tookPart := "", joinPause, false
	for {
		switch spared := n.Spared(); {
		case n.Votes():
			said, pause, tookPart = "", sparedPause, true
			n.lookForMe()
		case spared && n.o.Damaged():
		case !spared && n.out() && n.lookForMe():
		case spared || !tookPart:
			if why := n.tryJoin(); why != said {
				said = why
				n.o.Logger.Info("cluster: not part of it yet", "member", n.o.Member, "because", why)
			}
		}
		select {
		case <-time.After(pause):
		case <-n.ctx.Done():
			return
		}
	}
}

// out reports that this disk has learned from the log that it is no part of the cluster any more.
// One that joins is a part of it as soon as it knows of one.
func (n *Node) out() bool {
	all := n.servers()
	return len(all) > 0 &&
		!slices.ContainsFunc(all, func(s raft.Server) bool { return s.ID == n.id })
}

// Votes reports that this disk has a vote, as it knows. Any goroutine.
func (n *Node) Votes() bool {
	return slices.ContainsFunc(n.servers(), func(s raft.Server) bool {
		return s.ID == n.id && s.Suffrage == raft.Voter
	})
}

// tryJoin takes one step towards the cluster and says what it waits for.
//
// If another member takes part, this disk asks to join. If none does and all of them have answered,
// no cluster has ever existed, and the first member begins it with the disks that have answered.
// While one member is silent nothing may begin: its disk could hold what this one has lost.
func (n *Node) tryJoin() string {
	all := n.askAll()
	var silent string
	for i, m := range n.o.Members {
		switch s := all[i]; {
		case s == nil:
			silent = m.ID
		case len(s.Servers) > 0:
			return n.askToJoin()
		}
	}
	if silent != "" {
		return "member " + silent + " does not answer"
	}
	if n.o.Members[0].ID != n.o.Member {
		return "member " + n.o.Members[0].ID + " has yet to begin"
	}
	var c raft.Configuration
	for i, m := range n.o.Members {
		id := raft.ServerID(all[i].Server)
		c.Servers = append(c.Servers, raft.Server{Suffrage: raft.Voter, ID: id,
			Address: addressOf(m.Raft, id)})
	}
	if err := n.raft.BootstrapCluster(c).Error(); err != nil {
		return "it could not begin: " + err.Error()
	}
	n.o.Logger.Info("cluster: begins", "members", len(c.Servers))
	return ""
}

// askAll asks every member for its status at once, in the order of the list; nil for one that does
// not answer, or answers as another member. It takes at most askTimeout.
func (n *Node) askAll() []*Status {
	all := n.askOthers()
	for i, m := range n.o.Members {
		if m.ID == n.o.Member {
			s := n.Status()
			all[i] = &s
		}
	}
	return all
}

// askOthers is askAll without this member, whose place is nil.
func (n *Node) askOthers() []*Status {
	all := make([]*Status, len(n.o.Members))
	var asking sync.WaitGroup
	for i, m := range n.o.Members {
		if m.ID == n.o.Member {
			continue
		}
		asking.Go(func() {
			if s, err := n.ask(m.Raft, question{Ask: askStatus}); err == nil && s.Member == m.ID {
				all[i] = &s
			}
		})
	}
	asking.Wait()
	return all
}

// askToJoin asks every member to let this disk take part; the leader does so, and the others
// refuse. It returns what the leader says, for the log.
func (n *Node) askToJoin() (why string) {
	q := question{
		Ask: askJoin, Member: n.o.Member, Server: string(n.id), Address: n.self.Raft,
		Applied: n.raft.AppliedIndex(),
	}
	why = "no leader is known"
	for _, m := range n.o.Members {
		if m.ID == n.o.Member {
			continue
		}
		s, err := n.ask(m.Raft, q)
		switch {
		case err != nil:
		case s.Refusal == "":
			return "it is catching up"
		case s.Role == raft.Leader.String():
			return s.Refusal
		}
	}
	return why
}

// ask puts a question to the member at an address, and waits at most askTimeout. A refusal is in
// the Status.
func (n *Node) ask(hostPort string, q question) (Status, error) {
	ctx, cancel := context.WithTimeout(n.ctx, askTimeout)
	defer cancel()
	return ask(ctx, n.network, hostPort, q)
}

// asker puts a question to the member at an address.
type asker interface {
	Ask(ctx context.Context, hostPort string, request []byte) ([]byte, error)
}

func ask(ctx context.Context, w asker, hostPort string, q question) (s Status, err error) {
	text, err := json.Marshal(q)
	if err != nil {
		return s, err
	}
	answer, err := w.Ask(ctx, hostPort, text)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(answer, &s); err != nil {
		return s, fmt.Errorf("quorum: answer of %s: %w", hostPort, err)
	}
	return s, nil
}

// errQuestion reports a question that this version does not know.
var errQuestion = errors.New("unknown question")

// answer answers the others. from is the address that a question came from. Every answer is this
// member's Status; a question that is refused has the reason in it. Any goroutine; a change blocks
// until it is agreed.
func (n *Node) answer(from string, request []byte) ([]byte, error) {
	var q question
	if err := json.Unmarshal(request, &q); err != nil {
		return nil, fmt.Errorf("quorum: question: %w", err)
	}
	var refused error
	switch q.Ask {
	case askStatus:
	case askJoin:
		refused = n.admit(from, q)
	case askAdd, askAddPlain:
		refused = n.expect(from, q)
	case askSpare:
		refused = n.spare(q)
	case askRemove, askRemovePlain:
		refused = n.remove(from, q)
	default:
		return nil, fmt.Errorf("quorum: ask=%q: %w", q.Ask, errQuestion)
	}
	s := n.Status()
	if refused != nil {
		s.Refusal = refused.Error()
	}
	return json.Marshal(s)
}

// admissions are members that an operator has added and that have not joined yet. mu is held
// through a whole change of the members, so that one follows the other; a second one is refused,
// not kept waiting.
type admissions struct {
	mu sync.Mutex
	// By member: where it listens. A writer holds both locks, a reader one of them.
	expected map[string]string
	brief    sync.Mutex // never held while anything waits
}

// expect notes where a member will listen. The caller holds mu.
func (a *admissions) expect(member, address string) {
	a.brief.Lock()
	defer a.brief.Unlock()
	if a.expected == nil {
		a.expected = map[string]string{}
	}
	a.expected[member] = address
}

// forget removes the note of a member. The caller holds mu.
func (a *admissions) forget(member string) {
	a.brief.Lock()
	defer a.brief.Unlock()
	delete(a.expected, member)
}

// list is the members that are expected, by number, without ids. Any goroutine.
func (a *admissions) list() (list []Server) {
	a.brief.Lock()
	defer a.brief.Unlock()
	for member, address := range a.expected {
		list = append(list, Server{Member: member, Address: address})
	}
	slices.SortFunc(list, func(x, y Server) int { return number(x.Member) - number(y.Member) })
	return list
}

// changeTimeout bounds a change of the configuration.
const changeTimeout = 10 * time.Second

var (
	errNotLeader = errors.New("this member does not lead")
	errStranger  = errors.New("not a member of this cluster; `posttrade cluster add` makes it one")
	errImpostor  = errors.New("another disk answers at that address")
	errThere     = errors.New("it is in this cluster at this address already")
	errUnderWay  = errors.New("another change is under way")
	errLastOne   = errors.New("the last member cannot be removed")
	errMinority  = errors.New("the members that would remain could not agree without it")
)

// admit lets a disk take part: first without a vote, and with a vote when it has caught up. An
// earlier disk of the same member, at the same address, is removed in between, so the member always
// has a place in the configuration: if the leader fails on the way, the next leader continues from
// that configuration. At another address a member is unknown until an operator has added it there:
// the process at the first address may be the member.
//
// The disk asks again until it has its vote, and each time the steps are taken that are left:
//
//   - It is not in the configuration: it is added without a vote, if its member is known at that
//     address and it answers there.
//   - An earlier disk of its member is: that one is removed, on record.
//   - It lacks at most promoteWithin entries: it gets its vote.
func (n *Node) admit(from string, q question) error {
	if !n.leads.Load() {
		return errNotLeader
	}
	if !n.admits.mu.TryLock() {
		return errUnderWay
	}
	defer n.admits.mu.Unlock()
	id, hostPort := raft.ServerID(q.Server), q.Address
	if number(q.Member) == 0 || memberOf(id) != q.Member {
		return fmt.Errorf("member %q server %q: %w", q.Member, q.Server, ErrMembers)
	}
	known := n.admits.expected[q.Member] == hostPort
	var former raft.ServerID
	var present, voter bool
	for _, s := range n.servers() {
		switch {
		case s.ID == id:
			present, voter = true, s.Suffrage == raft.Voter
		case memberOf(s.ID) == q.Member:
			former = s.ID
			at, _ := hostPortOf(s.Address)
			known = known || at == hostPort
		}
	}
	if !present {
		if !known {
			return fmt.Errorf("member %s at %s: %w", q.Member, hostPort, errStranger)
		}
		// The process at the address must be the one that asks: two processes that take themselves for
		// the same member would replace each other for ever.
		if s, err := n.ask(hostPort, question{Ask: askStatus}); err != nil || s.Server != q.Server {
			return errors.Join(fmt.Errorf("member %s at %s: %w", q.Member, hostPort, errImpostor), err)
		}
		if err := n.raft.AddNonvoter(id, addressOf(hostPort, id), 0, changeTimeout).Error(); err != nil {
			return err
		}
		n.admits.forget(q.Member)
	}
	if former != "" {
		n.o.Logger.Warn("cluster: a member comes back with another disk", "member", q.Member,
			"was", string(former), "is", q.Server)
		c := Change{Kind: Replaced, Member: q.Member, From: from,
			Old: n.server(former), New: n.server(id)}
		if err := n.carryOut(c, func() error {
			return n.raft.RemoveServer(former, 0, changeTimeout).Error()
		}); err != nil {
			return err
		}
	}
	if voter || n.raft.LastIndex() > q.Applied+promoteWithin {
		return nil
	}
	return n.raft.AddVoter(id, addressOf(hostPort, id), 0, changeTimeout).Error()
}
