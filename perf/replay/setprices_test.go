package replay

import "testing"

// A flow of which most orders are refused for the market price fails, and says what to do; with
// --set-prices the first price of each security is set before anything else.
func TestReplayAsksForPrices(t *testing.T) {
	f := &fakeMatcher{refuse: map[int]string{1: "PRICE_COLLAR"}}
	url := startFake(t, f)
	flow := writeFlowFile(t, "new,a,1,AAPL,Buy,,,10,187.25,\nnew,b,1,MSFT,Buy,,,10,20,\n"+
		"new,c,2,AAPL,Buy,MARKET,,10,,\n")
	wantReplay(t, 1, []string{"2 of 3 steps were refused for the market price", "--set-prices"},
		flow, "--url", url)
	if f.paths["/prices"] != 0 {
		t.Errorf("prices were set: %v", f.paths)
	}
	f.refuse = nil
	wantReplay(t, 0, []string{"accepted 3"}, flow, "--url", url, "--set-prices", "--prefix=x")
	if f.paths["/prices"] != 2 {
		t.Errorf("%d prices were set, want 2: %v", f.paths["/prices"], f.paths)
	}
	f.broken = 403
	wantReplay(t, 1, []string{"--set-prices: AAPL"}, flow, "--url", url, "--set-prices")
}
