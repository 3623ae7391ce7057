package quorum

import (
	"errors"
	"slices"
	"testing"
)

func TestMembersAreParsed(t *testing.T) {
	got, err := ParseMembers("10=c:7@c:8, 2=b:7@b:8,1=[::1]:7@a:8")
	want := []Member{{"1", "[::1]:7", "a:8"}, {"2", "b:7", "b:8"}, {"10", "c:7", "c:8"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, text := range []string{
		"", "1", "1=a:7", "1=a:7@", "=a:7@a:8", "0=a:7@a:8", "01=a:7@a:8", "256=a:7@a:8", "-1=a:7@a:8",
		"x=a:7@a:8",
		"1=a@a:8", "1=:7@a:8", "1=a:0@a:8", "1=a:70000@a:8", "1=a:7@a:x", "1=a/b:7@a:8", "1=a b:7@a:8",
		"1=a:7@a:8,1=b:7@b:8", "1=a:7@a:8,2=a:7@b:8", "1=a:7@a:8,2=b:7@a:8", "1=a:7@a:8,",
	} {
		if got, err := ParseMembers(text); !errors.Is(err, ErrMembers) {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, ErrMembers)
		}
	}
}

func TestAddressNamesTheServer(t *testing.T) {
	hostPort, id := hostPortOf(addressOf("[::1]:7", "2.ab"))
	if hostPort != "[::1]:7" || id != "2.ab" || memberOf(id) != "2" {
		t.Errorf("got %q %q %q", hostPort, id, memberOf(id))
	}
}
