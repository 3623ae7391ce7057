package installation

import (
	"encoding/json"
	"fmt"
	"strings"

	"posttrade/ring/must"
)

// creditFill and creditOrder are what the credit of an account is made of.
type (
	creditFill struct {
		AccountID uint32
		Side      string
		Quantity  int64
		Price     json.Number
	}
	creditOrder struct {
		AccountID         uint32
		Side              string
		RemainingQuantity int64
		LimitPrice        json.Number
	}
)

// credit recomputes what every account uses from the server's fills and open orders, and which
// limit each has from the controls, and compares with GET /credit. The flow's prices are whole.
func (f *pastFlow) credit() {
	f.t.Helper()
	var fills struct{ Items []creditFill }
	var open struct{ Items []creditOrder }
	var got struct {
		Items []struct {
			AccountID               uint32
			CreditUsed, CreditLimit int64
		}
	}
	type limits struct{ CreditLimit *int64 }
	var controls struct {
		Limits   limits
		Accounts []struct {
			ID     uint32
			Limits limits
		}
	}
	var used [2]map[uint32]int64 // by side
	for side := range used {
		used[side] = map[uint32]int64{}
	}
	for since := 0; ; {
		f.decode(fmt.Sprintf("/recon/trades/blotter?limit=1000&sinceSeq=%d", since), &fills)
		for _, fill := range fills.Items {
			worth := fill.Quantity * f.whole(fill.Price)
			if fill.Side == "Sell" {
				worth = -worth
			}
			used[0][fill.AccountID] += worth
			used[1][fill.AccountID] -= worth
		}
		if since += len(fills.Items); len(fills.Items) == 0 {
			break
		}
	}
	f.decode("/orders?status=open&limit=1000", &open)
	for _, o := range open.Items {
		side := 0
		if o.Side == "Sell" {
			side = 1
		}
		used[side][o.AccountID] += o.RemainingQuantity * f.whole(o.LimitPrice)
	}
	f.decode("/risk/control/snapshot", &controls)
	own := map[uint32]int64{}
	for _, a := range controls.Accounts {
		if own[a.ID] = *controls.Limits.CreditLimit; a.Limits.CreditLimit != nil {
			own[a.ID] = *a.Limits.CreditLimit
		}
	}
	f.decode("/credit?limit=1000", &got)
	for _, a := range got.Items {
		want := max(used[0][a.AccountID], used[1][a.AccountID])
		if a.CreditUsed != want || a.CreditLimit != own[a.AccountID] {
			f.t.Fatalf("sequence %d: account %d uses %d of %d, its orders and fills say %d of %d", f.head(),
				a.AccountID, a.CreditUsed, a.CreditLimit, want, own[a.AccountID])
		}
	}
	if len(got.Items) != len(own) || len(used[0])+len(used[1]) == 0 {
		f.t.Fatalf("sequence %d: %d accounts of %d, %v", f.head(), len(got.Items), len(own), used)
	}
}

// decode reads an answer of now.
func (f *pastFlow) decode(path string, into any) {
	f.t.Helper()
	d := json.NewDecoder(strings.NewReader(f.get(path)))
	if err := d.Decode(into); err != nil {
		f.t.Fatalf("%s: %v", path, err)
	}
}

func (f *pastFlow) whole(n json.Number) int64 {
	f.t.Helper()
	return must.Get(n.Int64())(f.t)
}
