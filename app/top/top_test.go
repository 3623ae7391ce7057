package top

import (
	"context"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/stats"
	"posttrade/journal"
	"posttrade/matcher/session"
	"posttrade/ring/must"
)

var updateTop = flag.Bool("update.top", false, "rewrite the frames in testdata")

// recordedLook is the content of a server's file at a second of its life.
func recordedLook(second uint64) *statsReading {
	l := &statsReading{alive: true, at: time.Unix(1_800_000_000+int64(second), 50_000_000)}
	i := &l.image
	i.Header = stats.Header{Magic: stats.Magic, Version: stats.Version,
		Generation: 1_799_999_000_000_000_000, PID: 4242}
	i.Clock = stats.Clock{Tick: second * 10, WallNanos: (1_800_000_000 + second) * 1e9,
		UptimeNanos: second * 1e9}
	i.Path = stats.Path{
		Looks: second * 10, Ready: 1, Stalls: second / 2, Events: second * 250_000,
		Input:  stats.Ring{Depth: 61_000, Slots: 65_536, DepthSum: second * 10 * 50_000},
		Output: stats.Ring{Depth: 1000, Slots: 131_072, DepthSum: second * 10 * 1000},
	}
	for stage := range i.Path.Stages {
		i.Path.Stages[stage] = stats.Stage{
			Sequence: 1_000_000 + second*(100_000-uint64(stage)*1000), Behind: uint64(stage) * 50,
			BehindSum: second * 10 * 40,
		}
	}
	i.Commits = stats.Commits{
		Commits: second * 800, Commands: 1_000_000 + second*100_000, Bytes: second * 800 * 4096,
		MaxNanos: 12_400_000, InFlight: 2,
	}
	for b, seconds := range journal.CommitBuckets {
		i.Commits.Bounds[b] = uint64(seconds*1e9 + 0.5)
	}
	i.Commits.Buckets[2], i.Commits.Buckets[13] = second*790, second*10
	i.Answers = stats.Answers{Accepted: second * 95_000, Rejected: second * 4, Duplicate: second / 4}
	i.Answers.Latency[stats.Offset-44], i.Answers.Latency[stats.Offset-30] = second*900, second*100
	i.Runtime = stats.Runtime{
		Heap: 84 << 20, HeapGoal: 128 << 20, Mapped: 310 << 20, Allocated: second * 3 << 20,
		Goroutines: 1214, GCCycles: second / 4,
	}
	i.Runtime.Pauses[stats.Offset-60] = second / 4
	i.Feeds = stats.Feeds{Present: 1, Sources: [2]stats.Feed{
		{State: 3, Watermark: 12, HighWatermark: 12},
		{State: 1, Watermark: 0, HighWatermark: 583, Unpublished: 40, PublishLagNanos: 2_500_000_000},
	}}
	i.Lags = stats.Lags{Present: 1, Projection: 1234, Recon: 88, TCA: 5, OpenBreaks: 1, Database: 1}
	return l
}

// withSessions adds three sessions of orders; one of them came after the eighth second.
func withSessions(l *statsReading) *statsReading {
	second := uint64(l.at.Unix() - 1_800_000_000)
	s := &l.image.Sessions
	*s = stats.Sessions{
		Present: 1, Orders: 3, Feeds: 2, Commands: second * 70_000, Accepted: second * 60_000,
		Refused:  second * 9_000,
		NotTaken: second * 1000, Records: second * 120_000, Missed: second / 12 * 7,
		TurnedAway: second / 12,
	}
	s.Times[11], s.Times[14] = second*69_000, second*1000
	s.Busiest[0] = stats.Session{ID: 3, Peer: 5150}
	s.Busiest[0].Times[11] = second * 40_000
	s.Busiest[1] = stats.Session{ID: 12, Peer: 5151}
	s.Busiest[1].Times[11], s.Busiest[1].Times[14] = second*29_000, second*1000
	if second > 8 {
		s.Busiest[2] = stats.Session{ID: 13}
		s.Busiest[2].Times[35] = 5
	}
	return l
}

// TestFramesAreAsRecorded compares whole frames with those in testdata.
func TestFramesAreAsRecorded(t *testing.T) {
	quiet := recordedLook(9)
	i := &quiet.image
	i.Path.Ready, i.Feeds, i.Lags = 0, stats.Feeds{}, stats.Lags{}
	i.Commits.StorageFull, i.Commits.Poisoned = 1, 1
	quiet.at = quiet.at.Add(time.Minute)
	member := recordedLook(12)
	member.image.Lags.Failed, member.image.Feeds.Sources[0].State = 2, 4
	member.image.Cluster = stats.Cluster{Members: 3, Member: 2, Role: 3, Term: 7, Leader: 2,
		Index: 120_000, Applied: 119_990}
	member.image.Cluster.Commit[stats.Offset-48] = 500
	member.image.Path.Proposals = stats.Ring{Depth: 300, Slots: 1024, DepthSum: 12 * 10 * 200}
	tests := []struct {
		name          string
		before, after *statsReading
		columns, rows int
		colour        bool
	}{
		{"busy", recordedLook(8), recordedLook(12), 100, 0, false},
		{"first", nil, recordedLook(12), 100, 0, false},
		{"started-again", otherProcess(recordedLook(8)), recordedLook(12), 100, 0, false},
		{"stuck", quiet, quiet, 100, 0, false},
		{"member", recordedLook(8), member, 100, 0, false},
		{"sessions", withSessions(recordedLook(8)), withSessions(recordedLook(12)), 100, 0, false},
		{"sessions-first", nil, withSessions(recordedLook(12)), 100, 0, false},
		{"terminal", recordedLook(8), recordedLook(12), 80, 24, true},
		{"small", recordedLook(8), recordedLook(12), 40, 10, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := compose(tt.before, tt.after, tt.columns).fit(tt.columns, tt.rows).text(tt.colour)
			got = strings.ReplaceAll(got, "\x1b", "^") // readable in a review
			path := filepath.Join("testdata", tt.name+".txt")
			if *updateTop {
				must.OK(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
					os.WriteFile(path, []byte(got), 0o644)))
			}
			want := must.Get(os.ReadFile(path))(t)
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func otherProcess(l *statsReading) *statsReading {
	l.image.Header.Generation--
	return l
}

// TestRatesComeFromTwoLooks checks the counters of the golden frames one by one.
func TestRatesComeFromTwoLooks(t *testing.T) {
	accepted := func(i *stats.Image) uint64 { return i.Answers.Accepted }
	busy := spanBetween(recordedLook(8), recordedLook(12))
	first := spanBetween(nil, recordedLook(12))
	again := spanBetween(otherProcess(recordedLook(8)), recordedLook(10))
	still := spanBetween(recordedLook(8), recordedLook(8))
	late := recordedLook(12)
	late.image.Clock.UptimeNanos = 16e9 // the writer was late: twice the time for the same counts
	slow := spanBetween(recordedLook(8), late)
	tests := []struct {
		name      string
		got, want float64
	}{
		{"between two looks", busy.rate(accepted), 95_000},
		{"since the start", first.rate(accepted), 95_000},
		{"of another process", again.rate(accepted), 95_000},
		{"by the writer's clock", slow.rate(accepted), 47_500},
		{"no time between", still.rate(accepted), math.NaN()},
		{"mean of the looks", busy.mean(func(i *stats.Image) uint64 { return i.Path.Input.DepthSum }),
			50_000},
		{"mean of no looks", still.mean(func(i *stats.Image) uint64 { return i.Path.Input.DepthSum }),
			math.NaN()},
		{"wait in the matcher, us", float64(busy.wait(stats.StageMatcher)) / 1e3,
			400}, // 40 in it, 100,000 a second out of it
		{"wait since the start", float64(first.wait(stats.StageMatcher)), float64(stats.None)},
		{"wait in a still stage", float64(still.wait(stats.StageMatcher)), float64(stats.None)},
		{"a counter that went back", float64(spanOfBackwards().of(accepted)), 0},
	}
	for _, tt := range tests {
		if tt.got != tt.want && !(math.IsNaN(tt.got) && math.IsNaN(tt.want)) {
			t.Errorf("%s: %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

func spanOfBackwards() *span {
	before, after := recordedLook(8), recordedLook(12)
	before.image.Answers.Accepted = math.MaxUint64
	s := spanBetween(before, after)
	return &s
}

func TestQuantilesAreUpperBounds(t *testing.T) {
	bounds := []time.Duration{1, 10, 100, stats.Unbounded}
	bound := func(b int) time.Duration { return bounds[b] }
	tests := []struct {
		name     string
		from, to []uint64
		q        float64
		want     time.Duration
	}{
		{"nothing came", []uint64{5, 5, 5, 5}, []uint64{5, 5, 5, 5}, 0.5, stats.None},
		{"all in one", []uint64{5, 5, 5, 5}, []uint64{5, 6, 5, 5}, 0.99, 10},
		{"half is the lower one", []uint64{0, 0, 0, 0}, []uint64{50, 0, 50, 0}, 0.5, 1},
		{"more than half is the upper one", []uint64{0, 0, 0, 0}, []uint64{49, 0, 51, 0}, 0.5, 100},
		{"the last hundredth", []uint64{0, 0, 0, 0}, []uint64{98, 0, 2, 0}, 0.99, 100},
		{"just not the last hundredth", []uint64{0, 0, 0, 0}, []uint64{99, 0, 1, 0}, 0.99, 1},
		{"beyond the bounds", []uint64{9, 9, 9, 9}, []uint64{9, 9, 9, 10}, 0.5, stats.Unbounded},
		{"the lowest", []uint64{0, 0, 0, 0}, []uint64{0, 1, 1, 0}, 0, 10},
	}
	for _, tt := range tests {
		if got := quantile(tt.q, tt.from, tt.to, bound); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestFiguresAreWrittenForPeople(t *testing.T) {
	tests := []struct{ got, want string }{
		{thousands(0), "0"}, {thousands(999), "999"}, {thousands(1000), "1,000"},
		{thousands(math.MaxUint64), "18,446,744,073,709,551,615"},
		{decimal(0), "0"}, {decimal(0.26), "0.3"}, {decimal(12), "12"}, {decimal(1234.5), "1,235"},
		{decimal(math.NaN()), "-"},
		{bytesText(0), "0 B"}, {bytesText(1536), "1.5 KiB"}, {bytesText(3 << 40), "3 TiB"},
		{bytesText(5000 << 40), "5,000 TiB"}, {bytesText(math.NaN()), "-"},
		{uptime(59e9), "59s"}, {uptime(61e9), "1m1s"}, {uptime(3660e9), "1h1m"},
		{uptime(90000e9), "1d1h"},
		{short(stats.None), "-"}, {short(stats.Unbounded), "more than the last bucket"},
		{short(1500), "1.50us"},
		{Named(stats.Roles[:], 3), "leader"}, {Named(stats.Roles[:], 9), "state 9"},
		{bar(0, 4), "    "}, {bar(0.01, 4), "|   "}, {bar(0.5, 4), "||  "}, {bar(2, 4), "||||"},
		{bar(math.NaN(), 4), "    "},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

// TestFramesFitEverySize: no line is wider than the screen, no frame higher, and no size panics.
func TestFramesFitEverySize(t *testing.T) {
	whole := compose(recordedLook(8), recordedLook(12), 200)
	for columns := 1; columns < 130; columns += 3 {
		for rows := 1; rows < 50; rows++ {
			lines := strings.Split(strings.TrimSuffix(compose(recordedLook(8), recordedLook(12),
				columns).fit(columns, rows).text(false), "\n"), "\n")
			if len(lines) > rows {
				t.Fatalf("%d lines on %d rows", len(lines), rows)
			}
			for _, l := range lines {
				if len(l) > columns {
					t.Fatalf("%q on %d columns", l, columns)
				}
			}
			if rows < len(whole)/2 && columns > 60 &&
				!strings.Contains(lines[rows-1], "the window is too low") {
				t.Fatalf("%d rows end with %q", rows, lines[rows-1])
			}
		}
	}
}

// serving writes a stats file as a server does, until the test ends or stop is called.
func serving(t *testing.T) (dir string, stop func()) {
	t.Helper()
	dir = t.TempDir()
	w, err := stats.NewStatsWriter(filepath.Join(dir, "stats"), apptest.StillSources(), time.Now)
	must.OK(t, err)
	ticker, asked, ended := time.NewTicker(stats.Every), make(chan struct{}), make(chan error)
	go func() { ended <- w.Run(ticker.C, asked) }()
	stop = sync.OnceFunc(func() {
		close(asked)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ticker.Stop()
	})
	t.Cleanup(stop)
	apptest.Until(t, "figures are there", func() (bool, any) {
		f, err := stats.OpenStats(filepath.Join(dir, "stats"))
		if err != nil {
			return false, err
		}
		defer f.Close()
		var image stats.Image
		return f.Load(&image) == nil && image.Clock.Tick > 0, image.Clock
	})
	return dir, stop
}

// TestFiguresElsewhereAreSaidToBe: the figures of feeds and lags that this member does not have.
func TestFiguresElsewhereAreSaidToBe(t *testing.T) {
	for present, want := range map[uint64]string{
		stats.Elsewhere: "none here: the leader has them", 0: "none: sidecars are off",
	} {
		look := recordedLook(12)
		look.image.Feeds, look.image.Lags = stats.Feeds{Present: present}, stats.Lags{Present: present}
		text := compose(nil, look, plainWidth).text(false)
		for _, section := range []string{"FEEDS", "LAGS"} {
			at := strings.Index(text, section)
			if at < 0 || !strings.HasPrefix(strings.TrimSpace(text[at+len(section):]), want) {
				t.Errorf("present %d: no %s with %q in\n%s", present, section, want, text)
			}
		}
	}
}

// screenOf is a display that gives its frames to the test one by one.
type screenOf struct {
	columns, rows int
	frames        chan string
	err           error
}

func (s *screenOf) size() (int, int) { return s.columns, s.rows }

func (s *screenOf) show(f frame) error {
	s.frames <- f.text(false)
	return s.err
}

// TestTopFollowsUntilItsEnd shows frames at ticks and when the size changes. It ends by a key, by a
// signal, by a failure, and with the server.
func TestTopFollowsUntilItsEnd(t *testing.T) {
	dir, stop := serving(t)
	view := &Screen{Path: filepath.Join(dir, "stats"), Now: time.Now}
	must.OK(t, view.look())
	d := &screenOf{columns: 100, frames: make(chan string)}
	tick, resized, keys, ended := make(chan time.Time), make(chan os.Signal), make(chan byte),
		make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	follow := func() {
		go func() { ended <- view.follow(ctx, d, tick, resized, keys) }()
		<-d.frames
	}
	follow()
	tick <- time.Time{}
	if got := <-d.frames; !strings.Contains(got, "  over ") {
		t.Errorf("a second look is not shown: %s", got)
	}
	keys <- 'x'
	<-d.frames
	resized <- os.Interrupt
	if got := <-d.frames; len(got) < 500 {
		t.Errorf("not shown again: %s", got)
	}
	keys <- 'q'
	if err := <-ended; err != nil {
		t.Error(err)
	}
	follow()
	close(keys) // the terminal is gone: that is not a key
	<-d.frames
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	ctx, d.err = t.Context(), errors.New("the reader has gone")
	follow()
	if err := <-ended; !errors.Is(err, d.err) {
		t.Errorf("ended with %v", err)
	}
	d.err = nil
	keys = nil
	follow()
	stop()
	tick <- time.Time{}
	if err := <-ended; !errors.Is(err, errNotRunning) {
		t.Errorf("ended with %v", err)
	}
}

func TestMeanOfSessionTimes(t *testing.T) {
	var from, to session.Times
	if got := meanOf(&from, &to); got != stats.None {
		t.Errorf("of nothing: %v", got)
	}
	from[20], to[20] = 5, 5 // before
	to[11], to[12] = 3, 1   // 1536 ns three times, 3072 ns once
	if got, want := meanOf(&from, &to), 1920*time.Nanosecond; got != want {
		t.Errorf("mean %v, want %v", got, want)
	}
	if got := meanOf(&to, &from); got != stats.None {
		t.Errorf("counters that went back: %v", got)
	}
}
