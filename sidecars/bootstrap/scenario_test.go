package bootstrap

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"posttrade/ring/must"
	"posttrade/ring/scenariotest"
	"posttrade/sidecars/control"
)

// TestReplicaScenarios plays testdata/scenarios/*.scn over either source, in virtual time: what
// happens to a source of five records, its stream and its replica, a line of dashes, and how the
// replica stands. Another source beside it is never disturbed.
//
//	buffer N, fetch-timeout DURATION   options; first
//	change RECORD on|off [TIMES]       a change is committed and published
//	publish VERSION                    a foreign message: next+N, last-N, other (the last version,
//	                                   other content), again (the last message again), nonsense
//	publisher late|on-time             late: changes are committed, and published when it is on time
//	lose REASON                        the subscription ends: cut, gap
//	beat [DURATION]                    a heartbeat; every five seconds for so long
//	pass DURATION
//	fetch stalls|goes-on               snapshots
//	snapshot bad-checksum|bad-count|good
//	stream, snapshot away|there        what cannot be reached
//	source forgets-two, source epoch   restored from a backup; goes on with the next epoch, two ahead
//	stream forgets                     all of it has aged out
//	unpublished RECORD                 a change is committed and never published
//	engine holds|takes|refuses
//	wait STATE
//	settle                             waits until replica and source are the same
//	status
//	told                               what the engine was told since the last told
//	repeat N ... end
func TestReplicaScenarios(t *testing.T) {
	scenariotest.Each(t, "testdata/scenarios/*.scn", func(t *testing.T, script, want string) {
		var lines [][]string
		for _, line := range scenariotest.Lines(script) {
			lines = append(lines, strings.Fields(line))
		}
		for _, source := range control.Sources() {
			t.Run(string(source), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if got := playReplica(t, source, lines); got != want {
						t.Errorf("got\n%swant\n%s", got, want)
					}
				})
			})
		}
	})
}

// replica plays one script.
type replica struct {
	*rig
	stall, hold chan struct{}
	out         strings.Builder
}

func playReplica(t *testing.T, source control.Source, lines [][]string) string {
	p := &replica{}
	p.rig = following(t, source, func(o *Options) {
		for _, words := range lines {
			switch words[0] {
			case "buffer":
				o.BufferCapacity, _ = strconv.Atoi(words[1])
			case "fetch-timeout":
				o.FetchTimeout, _ = time.ParseDuration(words[1])
			}
		}
	})
	defer p.stop()
	others := control.Sources()
	other := following(t, others[(slices.Index(others, source)+1)%len(others)], nil)
	defer other.stop()
	healthy, stop := time.NewTicker(time.Second), make(chan struct{})
	defer healthy.Stop()
	defer close(stop)
	go func() {
		for {
			select {
			case <-healthy.C:
				other.feed().beat()
			case <-stop:
				return
			}
		}
	}()
	must.OK(t, p.lines(lines))
	if s, n := other.b.Status(), other.sink.installed(); s.State != Ready || n != 1 ||
		len(s.Quarantines) != 0 {
		t.Errorf("the other source: %+v, %d installs", s, n)
	}
	return p.out.String()
}

func (p *replica) lines(lines [][]string) error {
	for at := 0; at < len(lines); at++ {
		words := lines[at]
		if words[0] == "repeat" {
			end := at + 1 + slices.IndexFunc(lines[at+1:], func(w []string) bool { return w[0] == "end" })
			n, err := strconv.Atoi(words[1])
			for range n {
				err = errors.Join(err, p.lines(lines[at+1:end]))
			}
			if err != nil {
				return err
			}
			at = end
			continue
		}
		if err := p.line(strings.Join(words, " "), words); err != nil {
			return fmt.Errorf("%v: %w", words, err)
		}
		synctest.Wait()
	}
	return nil
}

// plays are the lines without a number in them.
var plays = map[string]func(p *replica){
	"publisher late": func(p *replica) { p.up.set(func(u *upstream) { u.late = true }) },
	"publisher on-time": func(p *replica) {
		p.up.release()
		p.up.set(func(u *upstream) { u.late = false })
	},
	"lose cut": func(p *replica) { p.feed().lose(errors.New("cut")) },
	"lose gap": func(p *replica) { p.feed().lose(fmt.Errorf("following: %w", ErrGap)) },
	"beat":     func(p *replica) { p.feed().beat() },
	"fetch stalls": func(p *replica) {
		stall := make(chan struct{})
		p.stall = stall
		p.up.set(func(u *upstream) { u.stall = stall })
	},
	"fetch goes-on": func(p *replica) {
		p.up.set(func(u *upstream) { u.stall = nil })
		close(p.stall)
	},
	"snapshot bad-checksum": func(p *replica) { p.fetchFails(control.ErrChecksum) },
	"snapshot bad-count":    func(p *replica) { p.fetchFails(control.ErrCount) },
	"snapshot good":         func(p *replica) { p.fetchFails(nil) },
	"snapshot away":         func(p *replica) { p.fetchFails(errors.New("connection refused")) },
	"snapshot there":        func(p *replica) { p.fetchFails(nil) },
	"stream away": func(p *replica) {
		p.up.set(func(u *upstream) { u.followErr = errors.New("connection refused") })
	},
	"stream there":       func(p *replica) { p.up.set(func(u *upstream) { u.followErr = nil }) },
	"stream forgets":     func(p *replica) { p.up.set(func(u *upstream) { u.stream = nil }) },
	"source forgets-two": func(p *replica) { p.up.set(forgetTwo) },
	"source epoch":       func(p *replica) { p.up.set(func(u *upstream) { u.epoch++ }) },
	"source two-ahead":   func(p *replica) { p.up.set(func(u *upstream) { u.version += 2 }) },
	"engine holds": func(p *replica) {
		hold := make(chan struct{})
		p.hold = hold
		p.engine(func(s *universe) { s.hold = hold })
	},
	"engine refuses": func(p *replica) {
		p.engine(func(s *universe) { s.applyErr = errors.New("no room") })
	},
	"engine takes": func(p *replica) {
		p.engine(func(s *universe) { s.applyErr, s.hold = nil, nil })
		if p.hold != nil {
			close(p.hold)
			p.hold = nil
		}
	},
	"publish other":    func(p *replica) { p.up.publish(p.up.delta(p.up.epoch, p.up.version, 5)) },
	"publish again":    func(p *replica) { p.up.publish(p.up.stream[len(p.up.stream)-1]) },
	"publish nonsense": func(p *replica) { p.up.publish([]byte(`{"epoch":1}`)) },
	"settle":           func(p *replica) { p.same() },
	"status":           func(p *replica) { p.say() },
	"told":             func(p *replica) { p.told() },
}

func (p *replica) fetchFails(err error) {
	if err != nil {
		err = fmt.Errorf("control: %w", err)
	}
	p.up.set(func(u *upstream) { u.fetchErr = err })
}

func (p *replica) engine(change func(*universe)) {
	p.sink.mu.Lock()
	defer p.sink.mu.Unlock()
	change(p.sink)
}

func (p *replica) line(line string, words []string) error {
	if play := plays[line]; play != nil {
		play(p)
		return nil
	}
	if len(words) < 2 {
		return errors.New("unknown line")
	}
	switch words[0] {
	case "buffer", "fetch-timeout":
		return nil
	case "wait":
		for state := range Quarantined + 1 {
			if strings.EqualFold(state.String(), words[1]) {
				p.wait(state)
				return nil
			}
		}
		return errors.New("no such state")
	case "pass", "beat":
		d, err := time.ParseDuration(words[1])
		for left := d; words[0] == "beat" && left > 0; left -= 5 * time.Second {
			<-time.After(5 * time.Second)
			p.feed().beat()
		}
		if words[0] == "pass" {
			<-time.After(d)
		}
		return err
	case "publish":
		return p.foreign(words[1])
	}
	id, err := strconv.Atoi(words[1])
	switch {
	case err != nil:
	case words[0] == "unpublished":
		p.up.set(func(u *upstream) { u.late = true })
		p.up.commit(uint32(id), false)
		p.up.set(func(u *upstream) { u.late, u.held = false, nil })
	case words[0] == "change" && len(words) > 2:
		times := 1
		if len(words) > 3 {
			times, err = strconv.Atoi(words[3])
		}
		for range times {
			p.up.commit(uint32(id), words[2] == "on")
		}
	default:
		err = errors.New("unknown line")
	}
	return err
}

// foreign publishes a version relative to the last one: next+N, last-N.
func (p *replica) foreign(text string) error {
	word, n := "", uint64(0)
	if _, err := fmt.Sscanf(strings.NewReplacer("+", " ", "-", " ").Replace(text), "%s %d", &word,
		&n); err != nil {
		return err
	}
	version := p.up.version + 1 + n
	if word == "last" {
		version = p.up.version - n
	}
	p.up.publish(p.up.delta(p.up.epoch, version, 1))
	return nil
}

// told appends the states that the engine was told of, and their reasons.
func (p *replica) told() {
	p.engine(func(s *universe) {
		p.out.WriteString("told")
		for i, state := range s.states {
			fmt.Fprintf(&p.out, " %s", state)
			if state == Quarantined {
				fmt.Fprintf(&p.out, "(%s)", s.reasons[i])
			}
		}
		p.out.WriteString("\n")
		s.states, s.reasons = nil, nil
	})
}

// say appends how the replica stands.
func (p *replica) say() {
	s, installs := p.b.Status(), p.sink.installed()
	fmt.Fprintf(&p.out, "%s at %d of %d, epoch %d: %d applied, %d late, %d repeated; %d installed\n",
		s.State, s.Watermark, s.HighWatermark, s.Epoch, s.Applied, s.Late, s.Repeated, installs)
	for _, reason := range slices.Sorted(maps.Keys(s.Quarantines)) {
		last := ""
		if reason == s.LastReason {
			last = ", the last one"
		}
		fmt.Fprintf(&p.out, "  %d times %s%s\n", s.Quarantines[reason], reason, last)
	}
}
