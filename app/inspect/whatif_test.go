package inspect

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
)

func TestWhatIfPrintsTableAndJSON(t *testing.T) {
	p := open(t)
	for _, tt := range []struct {
		o    WhatIf
		want []string
	}{
		{WhatIf{From: 1, To: 6}, []string{"sequences 1 to 6, 6 commands decided anew; " + notModelled,
			"no difference"}},
		{WhatIf{From: 1, To: 6, Set: []string{"risk.max-order-quantity=60"}}, []string{
			"orders decided differently: 1", "sequence command order account security was is",
			"4 order ord-3 2 AAA REJECTED ORDER_SIZE ACCEPTED"}},
		{WhatIf{From: 3, To: 6, Without: []string{"1"}}, []string{
			"4 commands decided anew, 1 left out", "trades: 0 appear, 1 vanish, 0 change",
			"3 ord-2 ord-1 AAA 5 at 101 -"}},
		{WhatIf{From: 1, To: 6, Halt: []string{"AAA@2"}, JSON: true}, []string{
			`{"kind":"order","sequence":2,"command":"order","orderId":"ord-1","accountId":1,` +
				`"security":"AAA","before":{"decision":"ACCEPTED","reason":null},` +
				`"after":{"decision":"REJECTED","reason":"SECURITY_DISABLED"}}`,
			`{"kind":"trade","sequence":3,"command":"order","orderId":"ord-2","accountId":2,` +
				`"security":"AAA","change":"vanished","counterOrderId":"ord-1",` +
				`"was":{"price":101,"quantity":5}}`,
			`"ordersDecidedDifferently":3,"tradesAppeared":0,"tradesVanished":1,"tradesChanged":0,"note":"` +
				notModelled}},
		{WhatIf{From: 1, To: 6, Price: []string{"AAA=300.5@2"}}, []string{
			"2 order ord-1 1 AAA ACCEPTED REJECTED PRICE_COLLAR"}},
		{WhatIf{From: 1, To: 6, Latency: []string{"account=1,ms=1"}}, []string{
			"3 ord-2 ord-1 AAA 5 at 101 -", "2 ord-1 ord-2 AAA - 5 at 101"}},
	} {
		var b bytes.Buffer
		if err := p.WhatIf(t.Context(), &b, &tt.o); err != nil {
			t.Errorf("%+v: %v", tt.o, err)
		}
		got := b.String()
		if !tt.o.JSON {
			var lines []string
			for line := range strings.Lines(got) {
				lines = append(lines, strings.Join(strings.Fields(line), " "))
			}
			got = strings.Join(lines, "\n")
		}
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%+v lacks %q:\n%s", tt.o, want, got)
			}
		}
	}
}

func TestWhatIfNamesWhatIsWrong(t *testing.T) {
	p := open(t)
	for want, o := range map[string]WhatIf{
		"--from 0":              {From: 0, To: 3},
		"--from 3 --to 2":       {From: 3, To: 2},
		"<= 6, the head":        {From: 3, To: 7},
		"--set \"risk.none=1\"": {From: 1, To: 6, Set: []string{"risk.none=1"}},
		"--set \"risk.credit-limit=0\"": {From: 1, To: 6,
			Set: []string{"risk.credit-limit=0"}},
		"--set \"risk.credit-limit\"":               {From: 1, To: 6, Set: []string{"risk.credit-limit"}},
		"--without-account \"x\"":                   {From: 1, To: 6, Without: []string{"x"}},
		"--halt \"AAA\"":                            {From: 1, To: 6, Halt: []string{"AAA"}},
		"of 2 to 6":                                 {From: 2, To: 6, Halt: []string{"AAA@1"}},
		"no such security at that sequence":         {From: 1, To: 6, Halt: []string{"NO@2"}},
		"\"AAA=1e3@2\": the price must be a number": {From: 1, To: 6, Price: []string{"AAA=1e3@2"}},
		"\"AAA=1p3@2\": the price must be a number": {From: 1, To: 6, Price: []string{"AAA=1p3@2"}},
		"\"AAA=0x8@2\": the price must be a number": {From: 1, To: 6, Price: []string{"AAA=0x8@2"}},
		"\"AAA=1_0@2\": the price must be a number": {From: 1, To: 6, Price: []string{"AAA=1_0@2"}},
		"more than 6 decimals":                      {From: 1, To: 6, Price: []string{"AAA=0.1234567@2"}},
		"must be above 0":                           {From: 1, To: 6, Price: []string{"AAA=0@2"}},
		"--latency \"account=1\"":                   {From: 1, To: 6, Latency: []string{"account=1"}},
		"--latency \"account=1,ms=-1\"": {From: 1, To: 6,
			Latency: []string{"account=1,ms=-1"}},
		"at most 315360000000 ms": {From: 1, To: 6,
			Latency: []string{"account=1,ms=315360000001"}},
		"--set \"risk.credit-limit=6\": the limit is set twice": {From: 1, To: 6,
			Set: []string{"risk.credit-limit=5", "risk.credit-limit=6"}},
		"--latency \"account=1,ms=3\": the account has one already": {From: 1, To: 6,
			Latency: []string{"account=1,ms=2", "account=1,ms=3"}},
		"there is no account 9 up to sequence 6":  {From: 1, To: 6, Without: []string{"1", "9"}},
		"there is no account 99 up to sequence 5": {From: 2, To: 5, Latency: []string{"account=99,ms=1"}},
	} {
		err := p.WhatIf(t.Context(), io.Discard, &o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := p.WhatIf(ctx, io.Discard, &WhatIf{From: 1, To: 6}); err == nil {
		t.Error("a run that was stopped at once ends well")
	}
}
