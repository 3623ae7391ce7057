package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"text/tabwriter"
	"time"

	"posttrade/app/installation"
	"posttrade/app/settings"
	"posttrade/journal/quorum"
)

const clusterUsage = "cluster status [--wait[=30s]] | cluster add " +
	"N=host:raftport@host:httpport | cluster remove N [--reason=TEXT] | cluster alone"

// clusterTimeout bounds one command of `posttrade cluster`; clusterWait is what --wait adds to it
// when it has no value, and clusterLook is the time between two rounds of it.
const (
	clusterTimeout = 15 * time.Second
	clusterWait    = time.Minute
	clusterLook    = 200 * time.Millisecond
)

// runCluster is `posttrade cluster`.
//
// It talks to the members over their own port, with the installation's certificates, and needs no
// journal here: it may run on another machine. Only alone runs on data.dir.
func runCluster(args []string, stdout, stderr io.Writer) int {
	f := newFlags(clusterUsage+" [flags]",
		"The members of the cluster that cluster.members names, asked over their own port.\n"+
			"  status  every member's role, how far it has come, and the configuration\n"+
			"  add     let another member join: then start it with an empty data.dir and itself in "+
			"cluster.members\n"+
			"  remove  go on without a member; it may be stopped afterwards\n"+
			"  alone   the disks of all others are lost: the member on data.dir, which is stopped, goes on "+
			"alone at its next\n"+
			"          start, with all that its consensus log has; docs/cluster.md, \"Two disks are lost\"")
	// The command talks to members and opens nothing: it asks for no database or broker.
	f.preset = []settings.FlagValue{{Name: "sidecars.enabled", Text: "false"}}
	wait := time.Duration(0)
	f.BoolFunc("wait", "with status: wait until there is a leader and the members that answer "+
		"take requests, at most 1m or as long as the value says", func(text string) (err error) {
		if wait = clusterWait; text != "true" {
			wait, err = time.ParseDuration(text)
		}
		if err == nil && wait < 0 {
			err = errors.New("want a duration of 0 or more")
		}
		return err
	})
	reason := f.String("reason", "", "with add and remove: why, for the record (`text`)")
	c, err := f.read(args, 2, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	k, err := newClusterCommand(c, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), clusterTimeout+wait)
	defer cancel()
	if len(f.rest) == 1 && f.rest[0] == "status" && *reason == "" {
		return settings.Exit(stderr, k.status(ctx, wait))
	}
	if len(f.rest) == 1 && f.rest[0] == "alone" && *reason == "" {
		return settings.Exit(stderr, k.alone(c))
	}
	return settings.Exit(stderr, k.addOrRemove(ctx, c, f.rest, *reason))
}

// addOrRemove runs the commands that change the configuration.
func (k *clusterCommand) addOrRemove(ctx context.Context, c *settings.Config, args []string,
	reason string) error {
	switch {
	case len(args) == 2 && args[0] == "add":
		m, err := quorum.ParseMember(args[1])
		if err != nil {
			return settings.Usagef("cluster add: %v", err)
		}
		done := fmt.Sprintf("member %s may join from %s: start it there with an empty data.dir\n"+
			"another disk of this member keeps its place until then\n", m.ID, m.Raft)
		return k.change(ctx, c, reason, done, func(at string) error {
			return k.remote.Add(ctx, at, m)
		})
	case len(args) == 2 && args[0] == "remove":
		done := fmt.Sprintf("member %s is removed: its process may be stopped\n", args[1])
		return k.change(ctx, c, reason, done, func(at string) error {
			return k.remote.Remove(ctx, at, args[1])
		})
	}
	return settings.Usagef("usage: posttrade %s", clusterUsage)
}

// clusterCommand is one call: the members to ask, in the order of cluster.members, and how.
type clusterCommand struct {
	// members are asked in this order; remote makes the requests, with certificates of the
	// installation.
	members []quorum.Member
	remote  quorum.Remote
	out     io.Writer
}

// newClusterCommand reads the members and the certificates. A configuration without a cluster is a
// usage error.
func newClusterCommand(c *settings.Config, out io.Writer) (*clusterCommand, error) {
	if !c.Clustered() {
		return nil, settings.Usagef("cluster.members: name the members to ask")
	}
	memberTLS, err := installation.MemberTLS(c)
	return &clusterCommand{c.Members(), quorum.Remote{TLS: memberTLS}, out}, err
}

// status asks every member and shows each answer. It fails when no member answers, or none within
// wait.
//
// Columns: last entry and applied are indexes of the consensus log; sequence is that of the last
// command in the member's journal; server is the id of the member's disk, and of term is the term
// of the last entry. A member that does not answer has a line that says so. The configuration shown
// is the leader's, or that of the first member that has one while no leader answers; a member
// without one does not take part yet. One that was added and has not come may join.
func (k *clusterCommand) status(ctx context.Context, wait time.Duration) error {
	if err := k.await(ctx, wait); err != nil {
		return err
	}
	t := tabwriter.NewWriter(k.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "member\trole\tleader\tterm\tlast entry\tapplied\tsequence\tserver\tof term")
	var configuration, expected []quorum.Server
	var failed error
	for _, m := range k.members {
		s, err := k.remote.Status(ctx, m.Raft)
		if err != nil {
			failed = errors.Join(failed, err)
			fmt.Fprintf(t, "%s\tdoes not answer\t\t\t\t\t\t\t\n", m.ID)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\n", s.Member, s.Role, orNone(s.Leader),
			s.Term, s.Last, s.Applied, s.Sequence, s.Server, orDash(s.LastTerm))
		if len(s.Servers) > 0 && (configuration == nil || s.Member == s.Leader) {
			configuration, expected = s.Servers, s.Expected
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if configuration == nil {
		return errors.Join(errors.New("no member takes part in a cluster"), failed)
	}
	fmt.Fprintln(k.out)
	fmt.Fprintln(t, "in the configuration\taddress\tvote")
	for _, s := range configuration {
		fmt.Fprintf(t, "%s\t%s\t%s\n", s.ID, s.Address, yesNo(s.Voter))
	}
	for _, s := range expected {
		fmt.Fprintf(t, "%s\t%s\tmay join\n", s.Member, s.Address)
	}
	return t.Flush()
}

// await returns when there is a leader and every member that answers takes requests over HTTP, or
// when wait is over.
//
// A script starts members and then waits here; what was missing in the last round is in the error.
func (k *clusterCommand) await(ctx context.Context, wait time.Duration) error {
	if wait == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	look := time.NewTicker(clusterLook)
	defer look.Stop()
	for {
		failed, err := k.ready(ctx, k.remote.Status)
		if err == nil {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%w within %s", err, wait), failed)
		}
	}
}

// ready asks every member once with status. err says what is missing before requests can be sent,
// failed which members do not answer.
func (k *clusterCommand) ready(ctx context.Context,
	status func(context.Context, string) (quorum.Status, error)) (failed, err error) {
	answered := false
	var dialer net.Dialer
	for _, m := range k.members {
		s, failure := status(ctx, m.Raft)
		if failure != nil {
			failed = errors.Join(failed, failure)
			continue
		}
		answered = true
		if s.Leader == "" {
			err = errors.Join(err, fmt.Errorf("member %s has known no leader", m.ID))
			continue
		}
		conn, failure := dialer.DialContext(ctx, "tcp", m.HTTP)
		if failure != nil {
			err = errors.Join(err, fmt.Errorf("member %s has not taken requests (%w)", m.ID, failure))
			continue
		}
		_ = conn.Close()
	}
	if !answered {
		err = errors.New("no member of a cluster has answered")
	}
	return failed, err
}

// orNone, orDash and yesNo word a cell of a table. A term is 0 when the member's build does not
// say.
func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func orDash(term uint64) string {
	if term == 0 {
		return "-"
	}
	return strconv.FormatUint(term, 10)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// change finds the leader and calls do with its address. The leader puts on record by whose hand
// and why.
//
// The first member that knows the leader is believed. The call is not repeated: when do fails, the
// change may or may not have been made, and status shows which. done is printed when it was made.
func (k *clusterCommand) change(ctx context.Context, c *settings.Config, reason, done string,
	do func(at string) error) error {
	by, err := installation.ByHand(c, reason)
	if err != nil {
		return err
	}
	k.remote.Subject, k.remote.Reason = by.Subject, by.Reason
	var failed error
	for _, m := range k.members {
		s, err := k.remote.Status(ctx, m.Raft)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		for _, leader := range s.Servers {
			if leader.Member == s.Leader && s.Leader != "" {
				if err := do(leader.Address); err != nil {
					return err
				}
				_, err := io.WriteString(k.out, done)
				return err
			}
		}
	}
	return errors.Join(errors.New("no leader is known"), failed)
}
