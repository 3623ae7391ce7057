package main

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"posttrade/journal/quorum"
	"posttrade/ring/must"
)

// A cluster is ready when a leader is known and the members that answer take requests. One that is
// away is not waited for.
func TestClusterIsReadyForRequests(t *testing.T) {
	open := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer open.Close()
	closed := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	must.OK(t, closed.Close())
	here, shut := open.Addr().String(), closed.Addr().String()
	for _, tt := range []struct {
		name    string
		http    [3]string // of the members, whose members' addresses are a, b and c
		leaders string    // what each says of the leader: a letter, - for none, . for no answer
		want    string    // a part of the error, "" for none
	}{
		{"all", [3]string{here, here, here}, "aaa", ""},
		{"one is away", [3]string{shut, here, here}, ".bb", ""},
		{"none answers", [3]string{here, here, here}, "...", "no member of a cluster has answered"},
		{"one alone, with no leader", [3]string{here, shut, shut}, "-..", "member 1 has known no leader"},
		{"one is behind", [3]string{here, here, here}, "aa-", "member 3 has known no leader"},
		{"no HTTP yet", [3]string{here, shut, here}, "aaa", "member 2 has not taken requests"},
	} {
		k := clusterCommand{}
		for i, http := range tt.http {
			k.members = append(k.members, quorum.Member{ID: string('1' + rune(i)),
				Raft: string('a' + rune(i)), HTTP: http})
		}
		failed, err := k.ready(t.Context(), func(_ context.Context, at string) (quorum.Status, error) {
			switch said := tt.leaders[at[0]-'a']; said {
			case '.':
				return quorum.Status{}, errors.New("away")
			case '-':
				return quorum.Status{}, nil
			default:
				return quorum.Status{Leader: string(said)}, nil
			}
		})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if away := strings.Contains(tt.leaders, "."); away != (failed != nil) {
			t.Errorf("%s: of those that do not answer it says %v", tt.name, failed)
		}
	}
}
