package riskextract

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posttrade/ring/must"
)

func TestReferenceFilesAreReadStrictly(t *testing.T) {
	const (
		cp = counterpartiesHeader + "\n"
		in = instrumentsHeader + "\n"
	)
	long := strings.Repeat("x", 65)
	tests := []struct{ name, counterparties, instruments, want string }{
		{"an empty file", "", in, "line=1"},
		{"another header", "accountId,counterpartyId,nettingSetId\n", in, "line=1"},
		{"a header in other case", strings.ToUpper(cp), in, "line=1"},
		{"a header without an end", counterpartiesHeader, in, "line=1"},
		{"a byte order mark", "\ufeff" + cp, in, "line=1"},
		{"carriage returns", counterpartiesHeader + "\r\n1,A,B,USD\r\n", in, "line=1"},
		{"a carriage return in a line", cp + "1,A,B,USD\r\n", in, "line=2"},
		{"no end of the last line", cp + "1,A,B,USD", in, "line=2"},
		{"an empty line", cp + "\n1,A,B,USD\n", in, "line=2"},
		{"an empty last line", cp + "1,A,B,USD\n\n", in, "line=3"},
		{"a column missing", cp + "1,A,B\n", in, "columns"},
		{"a column too many", cp + "1,A,B,USD,\n", in, "columns"},
		{"quotes", cp + "1,\"A\",B,USD\n", in, "line=2"},
		{"a space before", cp + " 1,A,B,USD\n", in, "space"},
		{"a space behind", cp + "1,A ,B,USD\n", in, "space"},
		{"a tab", cp + "1,A\t,B,USD\n", in, "line=2"},
		{"a letter beyond ASCII", cp + "1,\u00c4,B,USD\n", in, "line=2"},
		{"account 0", cp + "0,A,B,USD\n", in, "accountId"},
		{"a negative account", cp + "-1,A,B,USD\n", in, "accountId"},
		{"a leading zero", cp + "01,A,B,USD\n", in, "accountId"},
		{"a sign", cp + "+1,A,B,USD\n", in, "accountId"},
		{"an account beyond 32 bits", cp + "4294967296,A,B,USD\n", in, "accountId"},
		{"an account twice", cp + "1,A,B,USD\n1,A,B,USD\n", in, "accountId=1 is there twice"},
		{"no counterparty", cp + "1,,B,USD\n", in, "counterpartyId"},
		{"a long counterparty", cp + "1," + long + ",B,USD\n", in, "counterpartyId"},
		{"a netting set with a blank", cp + "1,A,B C,USD\n", in, "nettingSetId"},
		{"a netting set of two counterparties", cp + "1,A,N,USD\n2,B,N,USD\n", in, "two counterparties"},
		{"no currency", cp + "1,A,B,\n", in, "currency"},
		{"a currency in lower case", cp + "1,A,B,usd\n", in, "currency"},
		{"a currency of four letters", cp + "1,A,B,USDT\n", in, "currency"},

		{"no security", cp, in + ",ETF,1,,,,,\n", "security"},
		{"a security with a blank", cp, in + "A B,ETF,1,,,,,\n", "security"},
		{"a security twice", cp, in + "A,ETF,1,,,,,\nA,EQUITY,1,,,,,\n", "security=A is there twice"},
		{"an unknown type", cp, in + "A,BOND,1,,,,,\n", "instrumentType"},
		{"a type in lower case", cp, in + "A,etf,1,,,,,\n", "instrumentType"},
		{"no multiplier", cp, in + "A,ETF,,,,,,\n", "contractMultiplier"},
		{"multiplier 0", cp, in + "A,OPTION,0,,2027-03-19,,,\n", "contractMultiplier"},
		{"a broken multiplier", cp, in + "A,OPTION,1.5,,2027-03-19,,,\n", "contractMultiplier"},
		{"a multiplier beyond 32 bits", cp, in + "A,OPTION,4294967296,,2027-03-19,,,\n",
			"contractMultiplier"},
		{"a share with a multiplier", cp, in + "A,EQUITY,2,,,,,\n", "contractMultiplier"},
		{"a fund with a maturity", cp, in + "A,ETF,1,,2027-03-19,,,\n", "no term"},
		{"an option without expiry", cp, in + "A,OPTION,100,,,,,\n", "maturityDate"},
		{"an option with a coupon", cp, in + "A,OPTION,100,0.01,2027-03-19,,,\n", "no term"},
		{"an option with a day count", cp, in + "A,OPTION,100,,2027-03-19,,,30/360\n", "no term"},
		{"a bond without coupon", cp, in + "A,TREASURY,1,,2030-01-01,2,2020-01-01,ACT/ACT\n", "coupon"},
		{"a negative coupon", cp, in + "A,TREASURY,1,-0.01,2030-01-01,2,2020-01-01,ACT/ACT\n", "coupon"},
		{"a coupon with an exponent", cp, in +
			"A,TREASURY,1,1e-2,2030-01-01,2,2020-01-01,ACT/ACT\n", "coupon"},
		{"a coupon of seven decimals", cp, in +
			"A,TREASURY,1,0.0000001,2030-01-01,2,2020-01-01,ACT/ACT\n", "coupon"},
		{"a bond without maturity", cp, in + "A,TREASURY,1,0.01,,2,2020-01-01,ACT/ACT\n", "maturityDate"},
		{"a day that is none", cp, in + "A,TREASURY,1,0.01,2030-02-30,2,2020-01-01,ACT/ACT\n",
			"maturityDate"},
		{"a day of another form", cp, in + "A,TREASURY,1,0.01,30.01.2030,2,2020-01-01,ACT/ACT\n",
			"maturityDate"},
		{"five coupons a year", cp, in + "A,TREASURY,1,0.01,2030-01-01,5,2020-01-01,ACT/ACT\n",
			"couponFrequency"},
		{"24 coupons a year", cp, in + "A,TREASURY,1,0.01,2030-01-01,24,2020-01-01,ACT/ACT\n",
			"couponFrequency"},
		{"a coupon that is never paid", cp, in + "A,TREASURY,1,0.01,2030-01-01,0,,\n", "couponFrequency"},
		{"coupons of nothing", cp, in + "A,TREASURY,1,0,2030-01-01,2,2020-01-01,ACT/ACT\n",
			"couponFrequency"},
		{"a bill with a day count", cp, in + "A,TREASURY,1,0,2030-01-01,0,,ACT/ACT\n", "no term"},
		{"no dated date", cp, in + "A,CORPORATE,1,0.01,2030-01-01,2,,ACT/ACT\n", "datedDate"},
		{"dated at the maturity", cp, in + "A,CORPORATE,1,0.01,2030-01-01,2,2030-01-01,ACT/ACT\n",
			"datedDate"},
		{"no day count", cp, in + "A,CORPORATE,1,0.01,2030-01-01,2,2020-01-01,\n", "dayCount"},
		{"an unknown day count", cp, in + "A,CORPORATE,1,0.01,2030-01-01,2,2020-01-01,ACT/366\n",
			"dayCount"},
		{"too large", cp, in + strings.Repeat("#", MaxReferenceBytes), "too large"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseReference(tt.counterparties, tt.instruments)
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			file := "read counterparties line="
			if tt.counterparties == cp {
				file = "read instruments line="
			}
			if err != nil && !strings.Contains(err.Error(), file) {
				t.Errorf("%v does not name the file and the line", err)
			}
		})
	}
	t.Logf("%d files refused", len(tests))
}

// TestBuiltInReferenceCoversTheBuiltInUniverse reads the seed files of the program.
func TestBuiltInReferenceCoversTheBuiltInUniverse(t *testing.T) {
	r := must.Get(loadReference("", ""))(t)
	seed := must.Get(os.ReadFile("../../app/settings/seeds/accounts.csv"))(t)
	accounts := strings.Split(strings.TrimSpace(string(seed)), "\n")[1:]
	for _, line := range accounts {
		id := must.Get(whole("id", strings.SplitN(line, ",", 2)[0], 1, 1<<32-1))(t)
		if _, err := r.counterparty(uint32(id)); err != nil {
			t.Error(err)
		}
	}
	if len(accounts) == 0 || len(accounts) != len(r.counterparties) {
		t.Errorf("%d seed accounts, %d counterparties", len(accounts), len(r.counterparties))
	}
	if _, err := r.counterparty(9); !errors.Is(err, ErrRefused) ||
		!strings.Contains(err.Error(), "accountId=9 ") {
		t.Errorf("account 9: %v", err)
	}
	kinds := make(map[kind]int)
	for _, i := range r.instruments {
		kinds[i.kind]++
	}
	if kinds[etf] == 0 || kinds[treasury] == 0 || kinds[corporate] == 0 || kinds[option] == 0 {
		t.Errorf("the built-in instruments are %v", kinds)
	}
	if got := r.instrument("NOT-LISTED"); got != share {
		t.Errorf("a security that is not listed is %+v", got)
	}
}

func TestReferenceFilesOfTheSettings(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "cp.csv")
	write(t, path, counterpartiesHeader+"\n7,SEVEN,N7,CHF\n")
	r := must.Get(loadReference(path, ""))(t)
	if got, err := r.counterparty(7); err != nil || got != (counterparty{"SEVEN", "N7", "CHF"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, paths := range [][2]string{{filepath.Join(dir, "none"), ""},
		{"", filepath.Join(dir, "none")}, {dir, ""}} {
		if _, err := loadReference(paths[0], paths[1]); err == nil || errors.Is(err, ErrRefused) {
			t.Errorf("%q: %v", paths, err)
		}
	}
}
