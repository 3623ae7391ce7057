package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"posttrade/matcher"
	"posttrade/ring/must"
)

func TestBuiltInSeeds(t *testing.T) {
	c := mustConfig(t)
	accounts := must.Get(c.SeedAccounts())(t)
	for id := range uint32(8) {
		if !slices.ContainsFunc(accounts, func(a seedAccount) bool { return a.ID == id+1 && a.Enabled }) {
			t.Errorf("account %d is missing or disabled", id+1)
		}
	}
	if len(accounts) < 12 {
		t.Errorf("%d accounts, want at least 12", len(accounts))
	}
	securities := must.Get(c.SeedSecurities())(t)
	if len(securities) < 505 {
		t.Errorf("%d securities, want at least 505", len(securities))
	}
	for _, ticker := range []string{"AAPL", "MSFT", "BRK.B", "SPY"} {
		if !slices.ContainsFunc(securities, func(s seedSecurity) bool {
			return s.Ticker == ticker && s.Enabled && !s.Halted
		}) {
			t.Errorf("%s is missing or not tradable", ticker)
		}
	}
}

func TestGenesisFollowsTheSettings(t *testing.T) {
	dir := t.TempDir()
	accounts := filepath.Join(dir, "accounts.csv")
	securities := filepath.Join(dir, "securities.csv")
	writeFile(t, accounts, "id,displayName,enabled\n9,Nine,false\n3,\"Three, Ltd\",true\n")
	writeFile(t, securities,
		"ticker,companyName,enabled,halted\nZZZ,Last,true,true\nAAA,First,false,false\n")

	g, err := genesisFrom(mustConfig(t, "seed.accounts", accounts, "seed.securities", securities,
		"risk.max-order-notional", "1000.5", "risk.max-order-quantity", "7", "risk.max-open-orders",
		"99"))
	must.OK(t, err)
	want := &matcher.Genesis{
		Format: matcher.GenesisFormat, TickPx: 1000,
		Accounts: []matcher.GenesisAccount{{ID: 3, Enabled: true}, {ID: 9}},
		Securities: []matcher.GenesisSecurity{{Ticker: "AAA"},
			{Ticker: "ZZZ", Enabled: true, Halted: true}},
		Limits: matcher.Limits{
			MaxOrderQty: 7, MaxOrderNotional: 1_000_500_000, MaxPositionQty: 1_000_000,
			MaxConcentrationNotional: 5_000_000_000_000_000, CreditLimit: 5_000_000_000_000_000,
			PriceMaxAgeMillis: 30_000, PriceCollarBps: 5000, IdempotencyCapacity: 65536,
			MaxAccounts: 4096, MaxSecurities: 4096, MaxContracts: 1 << 20, MaxOpenOrders: 99,
			RetainedOrders: 65536,
		},
	}
	if diff := cmp.Diff(want, g); diff != "" {
		t.Errorf("genesis (-want +got):\n%s", diff)
	}

	// Named ids keep the file's flags; a named id that the file does not have is enabled.
	g, err = genesisFrom(mustConfig(t, "seed.accounts", accounts, "seed.securities", securities,
		"risk.seed.accounts", "9,1", "risk.seed.securities", "ZZZ,NEW"))
	must.OK(t, err)
	if diff := cmp.Diff([]matcher.GenesisAccount{{ID: 1, Enabled: true}, {ID: 9}},
		g.Accounts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]matcher.GenesisSecurity{{Ticker: "NEW", Enabled: true},
		{Ticker: "ZZZ", Enabled: true, Halted: true}}, g.Securities); diff != "" {
		t.Error(diff)
	}
}

func TestGenesisMustFitTheEngine(t *testing.T) {
	_, err := genesisFrom(mustConfig(t, "risk.max-accounts", "2"))
	wantUsage(t, err, "risk.max-accounts: 2 is less than")
	_, err = genesisFrom(mustConfig(t, "risk.max-securities", "500"))
	wantUsage(t, err, "risk.max-securities: 500 is less than")
}

func TestBadSeedFilesAreNamedWithTheirLine(t *testing.T) {
	const accounts, securities = "id,displayName,enabled\n", "ticker,companyName,enabled,halted\n"
	tests := []struct{ name, setting, content, want string }{
		{"no header", "seed.accounts", "", "line 1: want the header id,displayName,enabled"},
		{"other header", "seed.accounts", "id,name,enabled\n", "line 1: want the header"},
		{"no rows", "seed.accounts", accounts, "line 1: a header and no rows"},
		{"id 0", "seed.accounts", accounts + "0,A,true\n", `line 2: id "0" is not`},
		{"id too large", "seed.accounts", accounts + "4294967296,A,true\n", "line 2: id"},
		{"id twice", "seed.accounts", accounts + "5,A,true\n5,B,true\n",
			"line 3: account 5 is on line 2 already"},
		{"no name", "seed.accounts", accounts + "5, ,true\n", "line 2: displayName"},
		{"control character", "seed.accounts", accounts + "5,a\x01b,true\n", "line 2: displayName"},
		{"broken UTF-8", "seed.accounts", accounts + "5,a\xffb,true\n", "line 2: displayName"},
		{"flag", "seed.accounts", accounts + "5,A,yes\n", `line 2: enabled "yes"`},
		{"columns", "seed.accounts", accounts + "\n5,A\n", "line 3: wrong number of fields"},
		{"quote", "seed.accounts", accounts + "5,\"A,true\n", "line 2"},
		{"ticker", "seed.securities", securities + "aapl,A,true,false\n", `line 2: ticker "aapl"`},
		{"ticker of dots", "seed.securities", securities + "..,A,true,false\n", `ticker ".." does not`},
		{"long ticker", "seed.securities", securities + "ABCDEFGHIJKLMNOPQ,A,true,false\n",
			"line 2: ticker"},
		{"ticker twice", "seed.securities", securities +
			"A,A,true,false\nB,B,true,false\nA,A,true,false\n", "line 4: ticker A is on line 2 already"},
		{"company name", "seed.securities", securities + "A,,true,false\n", "line 2: companyName"},
		{"enabled flag", "seed.securities", securities + "A,A,1,false\n", "line 2: enabled"},
		{"halted flag", "seed.securities", securities + "A,A,true,\n", "line 2: halted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "seed.csv")
			writeFile(t, path, tt.content)
			_, err := genesisFrom(mustConfig(t, tt.setting, path))
			wantUsage(t, err, tt.want)
			wantUsage(t, err, tt.setting)
		})
	}
	_, err := genesisFrom(mustConfig(t, "seed.accounts", "no/such/file"))
	wantUsage(t, err, "seed.accounts: no/such/file: no such file")
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	must.OK(t, os.WriteFile(path, []byte(content), 0o600))
}

func FuzzSeedSecurities(f *testing.F) {
	f.Add("ticker,companyName,enabled,halted\nAAPL,Apple,true,false\n")
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := parseSecurities(strings.NewReader(text))
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("the error has two lines: %q", err)
		}
		for _, row := range rows {
			if !matcher.ValidTicker(row.Ticker) || row.CompanyName == "" {
				t.Errorf("%+v was read", row)
			}
		}
	})
}
