package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"posttrade/app/installation"
	"posttrade/app/settings"
	"posttrade/journal/quorum"
)

const clusterUsage = "cluster status | cluster add N=host:raftport@host:httpport | cluster remove N"

// clusterTimeout bounds one command of `posttrade cluster`.
const clusterTimeout = 15 * time.Second

// runCluster is `posttrade cluster`.
func runCluster(args []string, stdout, stderr io.Writer) int {
	f := newFlags(clusterUsage+" [flags]",
		"The members of the cluster that cluster.members names, asked over their own port.\n"+
			"  status  every member's role, how far it has come, and the configuration\n"+
			"  add     let another member join: then start it with an empty data.dir and itself in cluster.members\n"+
			"  remove  go on without a member; it may be stopped afterwards")
	c, err := f.read(args, 2, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	k, err := newClusterCommand(c, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), clusterTimeout)
	defer cancel()
	switch {
	case len(f.rest) == 1 && f.rest[0] == "status":
		return settings.Exit(stderr, k.status(ctx))
	case len(f.rest) == 2 && f.rest[0] == "add":
		m, err := quorum.ParseMember(f.rest[1])
		if err != nil {
			return settings.Exit(stderr, settings.Usagef("cluster add: %v", err))
		}
		return settings.Exit(stderr, k.change(ctx, func(at string) error { return k.remote.Add(ctx, at, m) }))
	case len(f.rest) == 2 && f.rest[0] == "remove":
		return settings.Exit(stderr,
			k.change(ctx, func(at string) error { return k.remote.Remove(ctx, at, f.rest[1]) }))
	}
	return settings.Exit(stderr, settings.Usagef("usage: posttrade %s", clusterUsage))
}

type clusterCommand struct {
	members []quorum.Member
	remote  quorum.Remote
	out     io.Writer
}

func newClusterCommand(c *settings.Config, out io.Writer) (*clusterCommand, error) {
	if !c.Clustered() {
		return nil, settings.Usagef("cluster.members: name the members to ask")
	}
	memberTLS, err := installation.MemberTLS(c)
	return &clusterCommand{c.Members(), quorum.Remote{TLS: memberTLS}, out}, err
}

// status asks every member and shows each answer. It fails when no member answers.
func (k *clusterCommand) status(ctx context.Context) error {
	t := tabwriter.NewWriter(k.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "member\trole\tleader\tterm\tlast entry\tapplied\tsequence\tserver")
	var configuration []quorum.Server
	var failed error
	for _, m := range k.members {
		s, err := k.remote.Status(ctx, m.Raft)
		if err != nil {
			failed = errors.Join(failed, err)
			fmt.Fprintf(t, "%s\tdoes not answer\t\t\t\t\t\t\n", m.ID)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\n", s.Member, s.Role, orNone(s.Leader), s.Term,
			s.Last, s.Applied, s.Sequence, s.Server)
		if len(s.Servers) > 0 && (configuration == nil || s.Member == s.Leader) {
			configuration = s.Servers
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
	return t.Flush()
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// change finds the leader and calls do with its address.
func (k *clusterCommand) change(ctx context.Context, do func(at string) error) error {
	var failed error
	for _, m := range k.members {
		s, err := k.remote.Status(ctx, m.Raft)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		for _, leader := range s.Servers {
			if leader.Member == s.Leader && s.Leader != "" {
				return do(leader.Address)
			}
		}
	}
	return errors.Join(errors.New("no leader is known"), failed)
}
