package inspect

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posttrade/app/settings"
	"posttrade/journal/asof/asoftest"
	"posttrade/matcher"
	"posttrade/ring/must"
)

const unit = matcher.PriceScale

// history writes a data directory: a price, a sale that rests, a purchase that takes it and rests,
// a refusal, a disabled account and a swap.
func history(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	w := asoftest.New(t, filepath.Join(dir, "journal"), &matcher.Genesis{
		Format: matcher.GenesisFormat, TickPx: 1000,
		Accounts: []matcher.GenesisAccount{{ID: 1, Enabled: true}, {ID: 2, Enabled: true}},
		Securities: []matcher.GenesisSecurity{
			{Ticker: "AAA", Enabled: true}, {Ticker: "BBB", Enabled: true},
		},
		Limits: matcher.Limits{
			MaxOrderQty: 50, MaxOrderNotional: 1e14, MaxPositionQty: 1000, MaxConcentrationNotional: 1e15,
			CreditLimit: 1e15, PriceMaxAgeMillis: 30_000, PriceCollarBps: 5000, IdempotencyCapacity: 64,
			MaxAccounts: 8, MaxSecurities: 8, MaxContracts: 8, MaxOpenOrders: 64, RetainedOrders: 64,
		},
	})
	order := func(account uint32, side matcher.Side, qty int32, px int64) matcher.Command {
		c := matcher.NewCommand(matcher.OrderNew)
		c.AccountID, c.SecurityID, c.Side, c.Qty, c.LimitPx = account, 1, side, qty, px*unit
		return c
	}
	tick := matcher.NewCommand(matcher.PriceTick)
	tick.SecurityID, tick.PriceTicks = 1, 100*unit
	off := matcher.NewCommand(matcher.AccountControl)
	off.AccountID, off.PriceTicks = 2, 1
	swap := (&matcher.ContractTerms{AccountID: 1, Notional: 1000, FixedRate: 40_000,
		Effective: 20_000, Maturity: 21_000}).Command()
	for i, c := range []matcher.Command{tick, order(1, matcher.Sell, 5, 101),
		order(2, matcher.Buy, 8, 101), order(2, matcher.Buy, 60, 101), off, swap} {
		c.EventTimeMillis = 1_772_445_600_000 + int64(i)
		w.Do(c)
	}
	w.Settle()
	return dir
}

// open opens the history for reading, while its writer has it open.
func open(t *testing.T) *Past {
	t.Helper()
	p := must.Get(Open(history(t), ""))(t)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestShowPrintsTablesAndJSON(t *testing.T) {
	p := open(t)
	for _, tt := range []struct {
		at   uint64
		args string
		json bool
		want string
	}{
		{2, "book AAA", true, `{"security":"AAA","sequence":2,"bids":[],` +
			`"asks":[{"price":101,"quantity":5,"orders":1}]}`},
		{3, "book AAA", false, "security  AAA\nsequence  3\nbids\nprice  quantity  orders\n" +
			"101    3         1\nasks"},
		{3, "positions account 1", false, "accountId  security  quantity  averageCost\n" +
			"1          AAA       -5        101"},
		{6, "credit", false, "accountId  creditUsed  creditLimit\n1 505 1000000000\n" +
			"2 808 1000000000"},
		{3, "credit account 2", true, `{"items":[{"accountId":2,"creditUsed":808,` +
			`"creditLimit":1000000000}],"nextCursor":null}`},
		{0, "accounts", true, `[{"id":1},{"id":2}]`},
		{2, "trades", true, `{"items":[],"nextCursor":null}`},
		{6, "order ord-2", false, "orderId            ord-2\nclientOrderId      -\n" +
			"accountId          2\nsecurity           AAA\nside               Buy\n" +
			"type               LIMIT\ntimeInForce        GTC\nquantity           8\n" +
			"remainingQuantity  3\nlimitPrice         101\nstatus             PARTIALLY_FILLED\n" +
			"riskReason         -\nlastExecutionPrice 101\nlastFillQuantity   5\n" +
			"createdAt          2026-03-02T10:00:00.002Z\nupdatedAt          2026-03-02T10:00:00.002Z\n" +
			"sequence           3"},
	} {
		var b bytes.Buffer
		if err := p.Show(t.Context(), &b, tt.at, strings.Fields(tt.args), 0, tt.json); err != nil {
			t.Errorf("%s: %v", tt.args, err)
		}
		got, want := strings.TrimSpace(b.String()), tt.want
		if !tt.json {
			got, want = strings.Join(strings.Fields(got), " "), strings.Join(strings.Fields(want), " ")
		}
		if got != want {
			t.Errorf("%s at %d:\n%s\nwant\n%s", tt.args, tt.at, got, want)
		}
	}
}

func TestWrongArgumentsAreNamed(t *testing.T) {
	p := open(t)
	for args, want := range map[string]string{
		"":                    "what to show is missing",
		"books":               `unknown: "books"`,
		"book":                "the ticker is missing",
		"book NONE":           "no such security: NONE",
		"book AAA more":       `unexpected argument "more"`,
		"orders of 7":         `unexpected argument "of"`,
		"orders account":      `unexpected argument "account"`,
		"orders account x":    "accountId",
		"order ord-99":        "no such order",
		"contract SW-1":       "no such contract",
		"order ord-1/../../x": "paths are plain",
	} {
		err := p.Show(t.Context(), io.Discard, 6, strings.Fields(args), 0, false)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
	if err := p.Show(t.Context(), io.Discard, 7, []string{"accounts"}, 0, false); err == nil ||
		!strings.Contains(err.Error(), "beyond the durable head, 6") {
		t.Error(err)
	}
	for _, id := range []string{"x", "ord-x", "ord-9", "SW-5", "0", "99"} {
		if err := p.Why(t.Context(), io.Discard, id, false); err == nil {
			t.Errorf("why %s has an answer", id)
		}
	}
	var usage settings.UsageError
	if err := p.Why(t.Context(), io.Discard, "0", false); !errors.As(err, &usage) ||
		!strings.Contains(err.Error(), "sequences begin at 1") {
		t.Errorf("why 0: %v", err)
	}
	if _, ok := p.Diff(t.Context(), io.Discard, 5, 4, nil).(settings.UsageError); !ok {
		t.Errorf("diff backwards: %v", usage)
	}
	if err := p.Diff(t.Context(), io.Discard, 1, 4, []string{"account", "x"}); err == nil {
		t.Error("diff of account x")
	}
	if _, err := Open(t.TempDir(), ""); err == nil {
		t.Error("a folder without a journal was opened")
	}
}

func TestDiffNamesTheCommands(t *testing.T) {
	p := open(t)
	for args, want := range map[string]string{
		"": "order ord-1: remainingQuantity 5 -> 0, status NEW -> FILLED, lastExecutionPrice - -> 101," +
			" lastFillQuantity - -> 5  (by 3)\n" +
			"position 1 AAA: new, accountId 1, security AAA, quantity -5, averageCost 101  (by 3)\n" +
			"account 2: enabled true -> false, version 0 -> 1, heldBy source -> operator  (by 5)\n" +
			"contract SW-6: new, contractId SW-6,",
		"account 1": "4 commands, 3 things changed\n",
		"account 9": "4 commands, 0 things changed\n",
	} {
		var b bytes.Buffer
		must.OK(t, p.Diff(t.Context(), &b, 2, 6, strings.Fields(args)))
		for line := range strings.SplitSeq(want, "\n") {
			if !strings.Contains(b.String(), line) {
				t.Errorf("diff %s lacks %q:\n%s", args, line, b.String())
			}
		}
	}
}

func TestStepFollowsTheKeys(t *testing.T) {
	p := open(t)
	var b bytes.Buffer
	must.OK(t, p.Step(t.Context(), strings.NewReader("bbnfAAA\nfAAA\nfNO\n?nnnnq"), &b, 1))
	want := []string{
		stepKeys,
		"1  2026-03-02 10:00:00.000  price  AAA 100", "     applied",
		"0  the state before the first command",
		"1  2026-03-02 10:00:00.000  price  AAA 100", "     applied",
		"next fill of: AAA",
		"3  2026-03-02 10:00:00.002  order  account 2  Buy 8 AAA at 101",
		"     ord-2 accepted",
		"     trd-1: account 2 bought 5 AAA at 101, position 5, ord-2 has 3 left",
		"     trd-2: account 1 sold 5 AAA at 101, position -5, ord-1 has 0 left",
		"     ord-2 rests with 3",
		"next fill of: AAA", "no later fill of AAA",
		"next fill of: NO", `no such security: "NO"`, stepKeys,
		"4  2026-03-02 10:00:00.003  order  account 2  Buy 60 AAA at 101",
		"     ord-3 refused: ORDER_SIZE",
		"5  2026-03-02 10:00:00.004  account control  account 2  state 0  version 1", "     applied",
		"6  2026-03-02 10:00:00.005  swap  account 1  notional 1000 at 0.04", "     booked as SW-6",
		"6 is the last command",
	}
	if got := strings.TrimSpace(b.String()); got != strings.Join(want, "\n") {
		t.Errorf("%s", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	hang, _, err := os.Pipe() // no key ever comes: the end of ctx ends the walk
	must.OK(t, err)
	if err := p.Step(ctx, hang, io.Discard, 0); err != nil {
		t.Error(err)
	}
}

func TestWhyPrintsTheSentenceAndItsCauses(t *testing.T) {
	p := open(t)
	var b bytes.Buffer
	must.OK(t, p.Why(t.Context(), &b, "ord-3", false))
	want := "ord-3 (Buy 60 AAA at 101 for account 2) was refused with ORDER_SIZE: its " +
		"quantity would be" +
		" 60, and 50 is the most.\n  0    limit risk.max-order-quantity = 50 quantity  as the " +
		"journal was" +
		" created\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	b.Reset()
	if err := p.Why(t.Context(), &b, "4", true); err != nil || !strings.Contains(b.String(),
		`"orderId":"ord-3","inputSeq":4,"decision":"REJECTED","reason":"ORDER_SIZE",`+
			`"decidedBy":"engine","rule":"risk.max-order-quantity",`+
			`"observed":{"value":60,"unit":"quantity"},"limit":{"value":50,"unit":"quantity"}`) {
		t.Errorf("%v %s", err, b.String())
	}
}
