package session

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"posttrade/matcher"
	"posttrade/matcher/admission"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/ring/must"
)

// order is a readable new order of account 1.
func order() matcher.Command {
	c := matcher.NewCommand(matcher.OrderNew)
	c.AccountID, c.SecurityID, c.Qty, c.LimitPx = 1, aaa, 5, 100_000_000
	return c
}

func with(c matcher.Command, change func(c *matcher.Command)) matcher.Command {
	change(&c)
	return c
}

func typed(t matcher.CommandType, change func(c *matcher.Command)) matcher.Command {
	return with(matcher.NewCommand(t), change)
}

// swap is a representable booking of account 1.
func swap() matcher.Command {
	terms := matcher.ContractTerms{AccountID: 1, Notional: 1000, FixedRate: 30_000, Effective: 20_000,
		Maturity: 21_000}
	return terms.Command()
}

// A malformed command is turned down with its correlation id, and never sequenced. The same command
// with the one field corrected is sequenced.
func TestMalformedCommandsAreNeverSequenced(t *testing.T) {
	cancel := typed(matcher.OrderCancel, func(c *matcher.Command) { c.AccountID, c.OrderRef = 1, 1 })
	replace := typed(matcher.OrderReplace,
		func(c *matcher.Command) { c.AccountID, c.OrderRef, c.Qty, c.LimitPx = 1, 1, 9, 1_000_000 })
	trade := typed(matcher.TradeNew,
		func(c *matcher.Command) { c.AccountID, c.SecurityID, c.Qty = 1, aaa, 5 })
	tests := []struct {
		name string
		good matcher.Command
		bad  func(c *matcher.Command)
	}{
		{"block length", order(), func(c *matcher.Command) { c.BlockLength++ }},
		{"schema", order(), func(c *matcher.Command) { c.SchemaID++ }},
		{"version", order(), func(c *matcher.Command) { c.Version++ }},
		{"template", order(), func(c *matcher.Command) { c.TemplateID = 9 }},
		{"type 0", order(), func(c *matcher.Command) { c.Type = 0 }},
		{"type of nobody", order(), func(c *matcher.Command) { c.Type = 14 }},
		{"side", order(), func(c *matcher.Command) { c.Side = 2 }},
		{"flag that means nothing", order(), func(c *matcher.Command) { c.Flags = 1 << 9 }},
		{"shadow flag", order(), func(c *matcher.Command) { c.Flags = matcher.FlagShadow }},
		{"two times in force", order(),
			func(c *matcher.Command) { c.Flags = matcher.FlagIOC | matcher.FlagFOK }},
		{"a market order that is post-only", order(),
			func(c *matcher.Command) { c.LimitPx, c.Flags = 0, matcher.FlagPostOnly }},
		{"quantity 0", order(), func(c *matcher.Command) { c.Qty = 0 }},
		{"negative quantity", order(), func(c *matcher.Command) { c.Qty = -1 }},
		{"negative limit", order(), func(c *matcher.Command) { c.LimitPx = -1 }},
		{"time", order(), func(c *matcher.Command) { c.EventTimeMillis = 1 }},
		{"key", order(), func(c *matcher.Command) { c.PriceTicks = 1 }},
		{"epoch", order(), func(c *matcher.Command) { c.LeaderEpoch = 1 }},
		{"the gate's verdict", order(),
			func(c *matcher.Command) { c.OrderRef = uint32(matcher.KillSwitch) }},
		{"trade with a limit", trade, func(c *matcher.Command) { c.LimitPx = 1 }},
		{"trade with a flag", trade, func(c *matcher.Command) { c.Flags = matcher.FlagIOC }},
		{"trade with a verdict", trade, func(c *matcher.Command) { c.OrderRef = 1 }},
		{"cancel of nothing", cancel, func(c *matcher.Command) { c.OrderRef = 0 }},
		{"cancel with a quantity", cancel, func(c *matcher.Command) { c.Qty = 1 }},
		{"cancel with a limit", cancel, func(c *matcher.Command) { c.LimitPx = 1 }},
		{"cancel with a security", cancel, func(c *matcher.Command) { c.SecurityID = 1 }},
		{"cancel with a side", cancel, func(c *matcher.Command) { c.Side = matcher.Sell }},
		{"replace of nothing", replace, func(c *matcher.Command) { c.OrderRef = 0 }},
		{"replace without a limit", replace, func(c *matcher.Command) { c.LimitPx = 0 }},
		{"replace without a quantity", replace, func(c *matcher.Command) { c.Qty = 0 }},
		{"replace with a flag", replace, func(c *matcher.Command) { c.Flags = matcher.FlagPostOnly }},
		{"swap without a rate", swap(), func(c *matcher.Command) { c.LimitPx = 0 }},
		{"swap that ends before it begins", swap(), func(c *matcher.Command) { c.OrderRef = 20_000 }},
		{"swap with a flag", swap(), func(c *matcher.Command) { c.Flags = matcher.FlagShadow }},
	}
	for _, kind := range []matcher.CommandType{matcher.ForceFill, matcher.PriceTick,
		matcher.SnapshotMark, matcher.AccountControl,
		matcher.SecurityControl, matcher.PolicyControl, matcher.RestrictionControl} {
		tests = append(tests, struct {
			name string
			good matcher.Command
			bad  func(c *matcher.Command)
		}{fmt.Sprintf("type %d is no client's", kind), order(),
			func(c *matcher.Command) { c.Type = kind }})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			c := r.dial("", client.Options{})
			ask(t, c, c.Order(1, &client.NewOrder{Account: 1, Security: aaa, Qty: 5, LimitPx: 50_000_000},
				""))
			bad := with(tt.good, tt.bad)
			got := ask(t, c, c.Send(7, &bad, ""))
			if got.Kind != wire.Answer || got.Code != wire.Malformed || got.Correlation != 7 ||
				got.InputSeq != 0 {
				t.Errorf("bad: %+v", got)
			}
			good := tt.good
			if got = ask(t, c, c.Send(8, &good, "")); got.Code != wire.Decided || got.Correlation != 8 ||
				got.InputSeq != 2 {
				t.Errorf("good: %+v", got)
			}
		})
	}
}

// A symbol registration or a risk marker is not a command that a client may send, and neither is
// one with bytes in the client id that are not text.
func TestOtherTemplatesAndClientIDs(t *testing.T) {
	r := newRig(t)
	c := r.dial("", client.Options{})
	symbol, extract := matcher.NewSymbolRegister("EVIL"), matcher.NewRiskExtract(20_000, 1)
	for i, cmd := range []*matcher.Command{&symbol, &extract} {
		if got := ask(t, c, c.Send(uint64(i), cmd, "")); got.Code != wire.Malformed {
			t.Errorf("template %d: %+v", cmd.TemplateID, got)
		}
	}
	for _, tt := range []struct {
		id   string
		want wire.Code
	}{
		{"plain-id", wire.Decided}, {"with space", wire.Decided}, {strings.Repeat("x", 64), wire.Decided},
		{"tab\t", wire.Malformed}, {"\x7f", wire.Malformed}, {"é", wire.Malformed},
		{"a\x00b", wire.Malformed},
		{"seven77\x00", wire.Decided}, {"seven77\x00x", wire.Malformed},
		{"\x00" + strings.Repeat("\x00", 62) + "x", wire.Malformed},
		{"eight888" + strings.Repeat("\x00", 7) + "x", wire.Malformed},
		{strings.Repeat("\x00", 64), wire.Decided},
	} {
		cmd := order()
		if got := ask(t, c, c.Send(9, &cmd, tt.id)); got.Code != tt.want {
			t.Errorf("client id %q: %+v", tt.id, got)
		}
	}
	cmd := order()
	if err := c.Send(9, &cmd, strings.Repeat("x", 65)); err != client.ErrClientID {
		t.Errorf("65 bytes: %v", err)
	}
}

// The token's accounts are the only ones that a session can act for, whatever it sends.
func TestSessionsActForTheirAccountsOnly(t *testing.T) {
	r := newRig(t, enforced)
	other := r.dial(r.token(false, 2), client.Options{})
	ask(t, other, other.Order(1,
		&client.NewOrder{Account: 2, Security: aaa, Qty: 5, LimitPx: 50_000_000}, ""))
	mine := r.dial(r.token(false, 1, 3), client.Options{})
	admin := r.dial(r.token(true), client.Options{})
	foreign := with(order(), func(c *matcher.Command) { c.AccountID = 2 })
	booking := with(swap(), func(c *matcher.Command) { c.AccountID = 2 })
	cancel := func(account uint32) *matcher.Command {
		c := typed(matcher.OrderCancel, func(c *matcher.Command) { c.AccountID, c.OrderRef = account, 1 })
		return &c
	}
	replace := func(account uint32) *matcher.Command {
		c := typed(matcher.OrderReplace,
			func(c *matcher.Command) {
				c.AccountID, c.OrderRef, c.Qty, c.LimitPx = account, 1, 6,
					50_000_000
			})
		return &c
	}
	tests := []struct {
		name string
		who  *client.Client
		cmd  *matcher.Command
		want wire.Code
	}{
		{"order for another account", mine, &foreign, wire.NotEntitled},
		{"booking for another account", mine, &booking, wire.NotEntitled},
		{"cancel of another's order", mine, cancel(2), wire.NotEntitled},
		{"cancel of another's order as one's own", mine, cancel(1), wire.NotEntitled},
		{"replace of another's order", mine, replace(2), wire.NotEntitled},
		{"replace of another's order as one's own", mine, replace(1), wire.NotEntitled},
		{"cancel under the wrong account", admin, cancel(1), wire.NotFound},
		{"admin's order for any account", admin, &foreign, wire.Decided},
		{"admin's replace", admin, replace(2), wire.Decided},
		{"admin's cancel", admin, cancel(2), wire.Decided},
	}
	for _, tt := range tests {
		got := ask(t, tt.who, tt.who.Send(1, tt.cmd, ""))
		if got.Code != tt.want || (got.InputSeq != 0) != (tt.want == wire.Decided) {
			t.Errorf("%s: %+v, want %s", tt.name, got, tt.want)
		}
	}
	missing := typed(matcher.OrderCancel, func(c *matcher.Command) { c.AccountID, c.OrderRef = 1, 99 })
	if got := ask(t, mine, mine.Send(1, &missing, "")); got.Code != wire.NotFound {
		t.Errorf("unknown order: %+v", got)
	}
}

// The setting decides whether the gate's refusals are sequenced. Cancels pass whatever the gate's
// verdict is.
func TestGateRefusals(t *testing.T) {
	tests := []struct {
		name   string
		cmd    matcher.Command
		reason matcher.RiskReason
	}{
		{"unknown account", with(order(), func(c *matcher.Command) { c.AccountID = 9 }),
			matcher.UnknownAccount},
		{"disabled account", with(order(), func(c *matcher.Command) { c.AccountID = 4 }),
			matcher.AccountDisabled},
		{"unknown security", with(order(), func(c *matcher.Command) { c.SecurityID = 9 }),
			matcher.UnknownSecurity},
		{"halted security", with(order(), func(c *matcher.Command) { c.SecurityID = 3 }),
			matcher.SecurityDisabled},
		{"off the tick", with(order(), func(c *matcher.Command) { c.LimitPx++ }), matcher.Invalid},
		{"size", with(order(), func(c *matcher.Command) { c.Qty = 100_001 }), matcher.OrderSize},
		{"notional", with(order(), func(c *matcher.Command) { c.Qty, c.LimitPx = 100_000, 1e14 }),
			matcher.OrderNotional},
		{"trade without a price",
			typed(matcher.TradeNew,
				func(c *matcher.Command) { c.AccountID, c.SecurityID, c.Qty = 1, bbb, 1 }),
			matcher.PriceMissing},
		{"booking of a disabled account", with(swap(), func(c *matcher.Command) { c.AccountID = 4 }),
			matcher.AccountDisabled},
	}
	for _, sequenced := range []bool{true, false} {
		t.Run(fmt.Sprintf("sequenced=%t", sequenced), func(t *testing.T) {
			r := newRig(t, func(r *rig) { r.o.SequenceRefusals = sequenced })
			c := r.dial("", client.Options{})
			for _, tt := range tests {
				want, code := r.stage.Applied(), wire.Refused
				if sequenced {
					want, code = want+1, wire.Decided
				}
				got := ask(t, c, c.Send(3, &tt.cmd, ""))
				if got.Code != code || got.Reason != tt.reason || got.Status != matcher.StatusRejected ||
					(got.InputSeq != 0) != sequenced {
					t.Errorf("%s: %+v", tt.name, got)
				}
				if r.stage.Applied() != want {
					t.Errorf("%s: applied %d, want %d", tt.name, r.stage.Applied(), want)
				}
			}
			ask(t, c, c.Order(1, &client.NewOrder{Account: 1, Security: aaa, Qty: 5, LimitPx: 50_000_000},
				""))
			ref := uint32(1)
			if sequenced { // refused orders have references too; trades and bookings have none
				ref = uint32(len(tests) - 2 + 1)
			}
			r.gate.SetPolicy(1, true, 0, 0)
			if got := ask(t, c, c.Order(2,
				&client.NewOrder{Account: 1, Security: aaa, Qty: 5, LimitPx: 50_000_000},
				"")); got.Reason != matcher.KillSwitch {
				t.Errorf("kill switch: %+v", got)
			}
			if got := ask(t, c, c.Cancel(4, 1, ref)); got.Code != wire.Decided ||
				got.Status != matcher.StatusCanceled {
				t.Errorf("cancel of %d: %+v", ref, got)
			}
		})
	}
}

// FuzzSlot gives the server any 128 bytes as a slot. A command that the server hands in is
// readable, is of an account for which the session may act, and has the server's own time and key.
// Every other slot is turned down.
func FuzzSlot(f *testing.F) {
	seed := func(c matcher.Command, id string) {
		var r wire.Request
		r.Command = c
		copy(r.ClientID[:], id)
		f.Add((*[wire.RequestBytes]byte)(unsafe.Pointer(&r))[:])
	}
	seed(order(), "id")
	seed(swap(), "")
	seed(typed(matcher.OrderCancel, func(c *matcher.Command) { c.AccountID, c.OrderRef = 1, 1 }), "")
	seed(matcher.NewSymbolRegister("AAA"), "")
	r := newRig(f, enforced)
	c := r.dial(r.token(false, 1, 3), client.Options{})
	ask(f, c, c.Order(1, &client.NewOrder{Account: 1, Security: aaa, Qty: 5, LimitPx: 50_000_000}, ""))
	p, one := &poller{server: r.server, now: testTime}, &session{server: r.server,
		requests: make([]wire.Request, 1), asks: make([]admission.Request, 1)}
	claims := must.Get(r.o.Verifier.Verify([]byte(r.token(false, 1, 3))))(f)
	one.token.Store(newSessionToken(nil, claims))
	one.asks[0].Command = &one.requests[0].Command
	f.Fuzz(func(t *testing.T, slot []byte) {
		req := &one.requests[0]
		*req = wire.Request{}
		copy((*[wire.RequestBytes]byte)(unsafe.Pointer(req))[:], slot)
		was := *req
		code := p.judge(one, 0)
		cmd := &req.Command
		switch {
		case int(code) >= wire.Codes:
			t.Fatalf("code %d", code)
		case code != wire.Decided:
			return
		case cmd.Verify() != nil || cmd.TemplateID != matcher.TemplateCommand:
			t.Fatalf("not a command: %+v", cmd)
		case cmd.AccountID != 1 && cmd.AccountID != 3 || cmd.AccountID != was.Command.AccountID:
			t.Fatalf("account %d", cmd.AccountID)
		case cmd.EventTimeMillis != testTime || was.Command.EventTimeMillis != 0:
			t.Fatalf("time %d", cmd.EventTimeMillis)
		}
		id := strings.TrimRight(string(req.ClientID[:]), "\x00")
		if want := int64(p.server.o.Views.ClientKey().Of(cmd.AccountID,
			[]byte(id))); cmd.PriceTicks != want {
			t.Fatalf("key %d, want %d", cmd.PriceTicks, want)
		}
		switch cmd.Type {
		case matcher.OrderNew, matcher.OrderCancel, matcher.OrderReplace, matcher.TradeNew,
			matcher.SwapBook, matcher.SwaptionBook:
		default:
			t.Fatalf("type %d", cmd.Type)
		}
	})
}

// A decision of another account under the same key as a client's id is not found. A decision of the
// same account under that key has another id, and is a conflict.
func TestForeignKeyMeetsNoSession(t *testing.T) {
	r := newRig(t)
	c := r.dial("", client.Options{})
	forge := func(account uint32, id string) {
		t.Helper()
		ticket := must.Get(r.o.Desk.Acquire(1))(t)
		defer ticket.Release()
		cmd := order()
		cmd.AccountID, cmd.EventTimeMillis = account, testTime
		cmd.PriceTicks = int64(r.o.Views.ClientKey().Of(1, []byte(id)))
		*ticket.Command(0) = cmd
		must.OK(t, ticket.Submit())
		must.OK(t, ticket.Wait(0))
	}
	forge(3, "mine")
	got := send(t, c, 1, order(), "mine")
	if got.Code != wire.Decided || got.Reason != matcher.Accepted ||
		got.Flags&wire.FlagDuplicate != 0 || got.AccountID != 1 {
		t.Errorf("behind another account's: %+v", got)
	}
	forge(1, "other")
	if got := send(t, c, 2, order(), "other"); got.Code != wire.Conflict {
		t.Errorf("behind another id of the same key: %+v", got)
	}
}
