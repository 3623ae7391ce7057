package orderflow

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"posttrade/matcher"
	"posttrade/ring/must"
)

const headerLine = "action,clientOrderId,accountId,security,side,type,timeInForce,quantity," +
	"limitPrice,ref\n"

func readAll(t *testing.T, text string) []Step {
	t.Helper()
	r := NewReader(strings.NewReader(text))
	var all []Step
	for {
		var s Step
		err := r.Next(&s)
		if err == io.EOF {
			return all
		}
		must.OK(t, err)
		all = append(all, s)
	}
}

var everyAction = []Step{
	{Action: New, ClientOrderID: "a-1", AccountID: 1, Security: "AAPL", Side: matcher.Buy,
		Quantity: 10, LimitPx: 187_250_000},
	{Action: New, ClientOrderID: `q"1,x`, AccountID: 4294967295, Security: "BRK.B", Side: matcher.Sell,
		TimeInForce: PostOnly, Quantity: 2147483647, LimitPx: 1},
	{Action: New, ClientOrderID: "m", AccountID: 2, Security: "X", Side: matcher.Sell, Type: Market,
		TimeInForce: FOK, Quantity: 1},
	{Action: Replace, Ref: "a-1", Quantity: 5, LimitPx: 187_250_000},
	{Action: Replace, Ref: "a-1", Quantity: 6, LimitPx: 1_000_000, ClientOrderID: "r-1", AccountID: 1},
	{Action: Cancel, Ref: "a-1"},
	{Action: Trade, ClientOrderID: "t", AccountID: 1, Security: "AAPL", Side: matcher.Buy,
		Quantity: 3},
	{Action: Price, Security: "AAPL", LimitPx: 9_223_372_036_854_775_807},
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file)
	for i := range everyAction {
		must.OK(t, w.Write(&everyAction[i]))
	}
	must.OK(t, w.Flush())
	if diff := cmp.Diff(everyAction, readAll(t, file.String())); diff != "" {
		t.Errorf("written and read (-want +got):\n%s", diff)
	}
}

func TestDefaultsMayBeLeftOut(t *testing.T) {
	got := readAll(t, headerLine+"new,a,1,AAPL,Buy,,,10,187.25,\n")
	want := []Step{{Action: New, ClientOrderID: "a", AccountID: 1, Security: "AAPL", Quantity: 10,
		LimitPx: 187_250_000}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReaderNamesTheBadLine(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"empty file", "", "line 1: want the header"},
		{"other header", "action,id\n", "line 1: wrong number of fields"},
		{"renamed column", strings.Replace(headerLine, "side", "way", 1), "line 1: want the header"},
		{"short row", headerLine + "cancel,,,\n", "line 2: wrong number of fields"},
		{"open quote", headerLine + "\"cancel,,,,,,,,,x\n",
			"line 2: extraneous or missing \" in quoted-field"},
		{"unknown action", headerLine + "amend,,,,,,,,,x\n", `line 2: action "amend"`},
		{"no id", headerLine + "new,,1,AAPL,Buy,,,10,1,\n", "line 2: new needs clientOrderId"},
		{"long id", headerLine + "new," + strings.Repeat("a", 65) + ",1,AAPL,Buy,,,10,1,\n",
			"line 2: clientOrderId"},
		{"id outside ASCII", headerLine + "new,ä,1,AAPL,Buy,,,10,1,\n", "line 2: clientOrderId"},
		{"account 0", headerLine + "new,a,0,AAPL,Buy,,,10,1,\n", `line 2: accountId "0"`},
		{"lower-case ticker", headerLine + "new,a,1,aapl,Buy,,,10,1,\n", `line 2: security "aapl"`},
		{"unknown side", headerLine + "new,a,1,AAPL,buy,,,10,1,\n", `line 2: side "buy"`},
		{"unknown type", headerLine + "new,a,1,AAPL,Buy,STOP,,10,1,\n", `line 2: type "STOP"`},
		{"unknown time in force", headerLine + "new,a,1,AAPL,Buy,,DAY,10,1,\n",
			`line 2: timeInForce "DAY"`},
		{"quantity 0", headerLine + "new,a,1,AAPL,Buy,,,0,1,\n", `line 2: quantity "0"`},
		{"quantity too large", headerLine + "new,a,1,AAPL,Buy,,,2147483648,1,\n",
			`line 2: quantity "2147483648"`},
		{"price 0", headerLine + "new,a,1,AAPL,Buy,,,1,0.000000,\n", "line 2: limitPrice"},
		{"seven decimals", headerLine + "new,a,1,AAPL,Buy,,,1,0.0000001,\n", "line 2: limitPrice"},
		{"price out of range", headerLine + "new,a,1,AAPL,Buy,,,1,9223372036854.775808,\n",
			"line 2: limitPrice"},
		{"exponent", headerLine + "new,a,1,AAPL,Buy,,,1,1e3,\n", "line 2: limitPrice"},
		{"signed decimals", headerLine + "new,a,1,AAPL,Buy,,,1,1.+5,\n", "line 2: limitPrice"},
		{"limit without price", headerLine + "new,a,1,AAPL,Buy,LIMIT,,1,,\n",
			"line 2: LIMIT needs limitPrice"},
		{"market with price", headerLine + "new,a,1,AAPL,Buy,MARKET,,1,5,\n",
			"line 2: LIMIT needs limitPrice, MARKET takes none"},
		{"market post only", headerLine + "new,a,1,AAPL,Buy,MARKET,POST_ONLY,1,,\n",
			"line 2: MARKET cannot be POST_ONLY"},
		{"cancel with quantity", headerLine + "cancel,,,,,,,5,,x\n", "line 2: cancel takes no quantity"},
		{"cancel of nobody", headerLine + "cancel,,,,,,,,,\n", "line 2: cancel needs ref"},
		{"second row bad", headerLine + "cancel,,,,,,,,,x\ncancel,,,,,,,,,\n",
			"line 3: cancel needs ref"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(tt.text))
			var s Step
			err := r.Next(&s)
			for err == nil {
				err = r.Next(&s)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, want %q", err, tt.want)
			}
		})
	}
}

func TestWriterRefusesWhatReaderWould(t *testing.T) {
	for _, s := range []Step{
		{Action: New}, {Action: 9}, {Action: Cancel},
		{Action: New, ClientOrderID: "a", AccountID: 1, Security: "AAPL", Quantity: 1, LimitPx: -5},
		{Action: New, ClientOrderID: "a", AccountID: 1, Security: "AAPL", Quantity: 1, LimitPx: 5,
			TimeInForce: 9},
	} {
		if err := NewWriter(io.Discard).Write(&s); err == nil {
			t.Errorf("%+v was written", s)
		}
	}
}

type brokenWriter struct{}

var errBroken = errors.New("disk is gone")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestWriterReportsAFailedWrite(t *testing.T) {
	w := NewWriter(brokenWriter{})
	if err := w.Write(&everyAction[0]); err != nil {
		t.Fatal(err) // still in the buffer
	}
	if err := w.Flush(); !errors.Is(err, errBroken) {
		t.Errorf("got %v, want %v", err, errBroken)
	}
}

func TestPricesRoundTrip(t *testing.T) {
	for _, px := range []int64{1, 10, 999_999, 1_000_000, 1_000_001, 187_250_000, 585_330_000,
		1<<63 - 1} {
		text := string(AppendPrice(nil, px))
		if back, err := ParsePrice(text); err != nil || back != px {
			t.Errorf("%d is %q is %d, %v", px, text, back, err)
		}
	}
	if got := string(AppendPrice(nil, 187_250_000)); got != "187.25" {
		t.Errorf("got %s, want 187.25", got)
	}
}

func FuzzReader(f *testing.F) {
	f.Add(headerLine + "new,a,1,AAPL,Buy,,,10,187.25,\ncancel,,,,,,,,,a\n")
	f.Fuzz(func(t *testing.T, text string) {
		r := NewReader(strings.NewReader(text))
		var s Step
		for r.Next(&s) == nil {
			var file bytes.Buffer
			w := NewWriter(&file)
			if err := w.Write(&s); err != nil {
				t.Fatalf("%+v was read and cannot be written: %v", s, err)
			}
			must.OK(t, w.Flush())
			var back Step
			if err := NewReader(&file).Next(&back); err != nil || back != s {
				t.Fatalf("%+v came back as %+v, %v", s, back, err)
			}
		}
	})
}
