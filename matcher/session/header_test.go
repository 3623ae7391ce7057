package session

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"posttrade/matcher"
	"posttrade/matcher/session/wire"
	"posttrade/ring"
	"posttrade/ring/must"
)

// constantsInGo are the constants of posttrade.h, by their names there.
var constantsInGo = map[string]int64{
	"UNIT":   matcher.PriceScale,
	"ORDERS": int64(wire.Orders), "DROP_COPY": int64(wire.DropCopy),
	"TRADES": int64(wire.Trades), "MARKET": int64(wire.Market),

	"OK": int64(wire.OK), "BAD_FRAME": int64(wire.BadFrame),
	"BAD_VERSION": int64(wire.BadVersion), "BAD_TOKEN": int64(wire.BadToken),
	"TOO_MANY": int64(wire.TooMany), "BAD_CURSOR": int64(wire.BadCursor),
	"SHUTDOWN": int64(wire.Shutdown), "NO_MEMORY": int64(wire.NoMemory),
	"NO_SUCH_ROLE": int64(wire.NoSuchRole), "TOKEN_EXPIRED": int64(wire.TokenExpired),
	"ASIDE": int64(wire.Aside),

	"NEW": int64(matcher.OrderNew), "CANCEL": int64(matcher.OrderCancel),
	"MARKET_TRADE": int64(matcher.TradeNew), "REPLACE": int64(matcher.OrderReplace),
	"SWAP": int64(matcher.SwapBook), "SWAPTION": int64(matcher.SwaptionBook),
	"BUY": int64(matcher.Buy), "SELL": int64(matcher.Sell),
	"IOC": int64(matcher.FlagIOC), "FOK": int64(matcher.FlagFOK),
	"POST_ONLY": int64(matcher.FlagPostOnly),

	"ANSWER": int64(wire.Answer), "FILL": int64(wire.Fill), "COPY": int64(wire.Copy),
	"TRADE": int64(wire.Trade), "GAP": int64(wire.Gap), "NAME": int64(wire.Name),
	"TOP": int64(wire.Top),

	"STATUS_NEW":       int64(matcher.StatusNew),
	"PARTIALLY_FILLED": int64(matcher.StatusPartiallyFilled),
	"FILLED":           int64(matcher.StatusFilled), "CANCELED": int64(matcher.StatusCanceled),
	"REJECTED": int64(matcher.StatusRejected), "STATUS_UNSTATED": int64(wire.StatusUnstated),

	"AGGRESSOR": int64(wire.FlagAggressor), "RESTS": int64(wire.FlagRests),
	"KEPT_PLACE": int64(wire.FlagKeptPlace), "IS_MARKET": int64(wire.FlagMarket),
	"FORCED": int64(wire.FlagForced), "DUPLICATE": int64(wire.FlagDuplicate),
	"SNAPSHOT": int64(wire.FlagSnapshot),

	"MAGIC": wire.Magic, "PROTOCOL": wire.Version, "MAX_TOKEN": wire.MaxTokenBytes,
	"HELLO": int64(wire.Hello), "WELCOME": int64(wire.Welcome), "RENEW": int64(wire.Renew),
	"RENEWED": int64(wire.Renewed), "LOOKUP": int64(wire.Lookup), "FOUND": int64(wire.Found),
	"GOODBYE": int64(wire.Goodbye), "SLOT_BYTES": wire.RecordBytes,
}

// placesInGo are the structures of posttrade.h, and the members whose names differ.
var placesInGo = map[string]struct {
	of    []reflect.Type // one inside the other
	names map[string]string
}{
	"pt_request": {[]reflect.Type{reflect.TypeFor[wire.Request](), reflect.TypeFor[matcher.Command]()},
		map[string]string{"correlation": "InputSeq", "limit": "LimitPx", "order": "OrderRef",
			"account": "AccountID", "security": "SecurityID"}},
	"pt_record": {[]reflect.Type{reflect.TypeFor[wire.Record]()},
		map[string]string{"sequence": "InputSeq", "time": "TimeMillis", "price": "Px",
			"last_price": "LastPx", "trade": "TradeSeq", "order": "OrderRef", "account": "AccountID",
			"security": "SecurityID", "position": "PositionQty", "limit": "LimitPx"}},
	"pt_top": {[]reflect.Type{reflect.TypeFor[wire.Best]()},
		map[string]string{"bid": "BidPx", "ask": "AskPx"}},
}

func header(t *testing.T) string {
	t.Helper()
	text := must.Get(os.ReadFile("c/posttrade.h"))(t)
	return string(text)
}

// TestHeaderHasTheConstantsOfTheServer: every constant of posttrade.h is one of Go's, with its
// value. Without a C compiler too.
func TestHeaderHasTheConstantsOfTheServer(t *testing.T) {
	want := maps.Clone(constantsInGo)
	for code := range wire.Codes {
		want[wire.Code(code).String()] = int64(code)
	}
	maps.Copy(want, ringPlaces(t))
	constant := regexp.MustCompile(`\bPT_([A-Z_]+) = (0x[0-9a-f]+|[0-9]+)`)
	for _, found := range constant.FindAllStringSubmatch(header(t), -1) {
		value := must.Get(strconv.ParseInt(found[2], 0, 64))(t)
		if in, ok := want[found[1]]; !ok || in != value {
			t.Errorf("PT_%s is %d, in Go %d (known: %t)", found[1], value, in, ok)
		}
		delete(want, found[1])
	}
	if len(want) > 0 {
		t.Errorf("not in the header: %v", slices.Sorted(maps.Keys(want)))
	}
}

// ringPlaces finds where a ring in a region keeps its cursors, by looking at one.
func ringPlaces(t *testing.T) map[string]int64 {
	t.Helper()
	memory := region(t, ring.SPSCBytes[wire.Request](16))
	commands := must.Get(ring.NewSPSC[wire.Request](memory, 16))(t)
	slot := commands.Claim()
	slot.Command.Qty = 77
	commands.Publish()
	bytes := memory.Bytes()
	at := func(offset int64) int64 { return *(*int64)(unsafe.Pointer(&bytes[offset])) }
	places := map[string]int64{"PUBLISHED": 4096, "TAKEN": 4224, "DOORBELL": 4352, "SLOTS": 8192,
		"WAITER": 128}
	if at(places["PUBLISHED"]) != 1 || at(places["TAKEN"]) != 0 ||
		uintptr(unsafe.Pointer(slot)) != uintptr(unsafe.Pointer(&bytes[places["SLOTS"]])) {
		t.Errorf("the ring has its cursors elsewhere")
	}
	commands.Ready(16)
	commands.Release(1)
	if at(places["TAKEN"]) != 1 {
		t.Errorf("the consumer's cursor is elsewhere")
	}
	return places
}

// TestHeaderHasTheLayoutOfTheServer: the C compiler holds the header's structures to the offsets in
// it, and this test holds these to Go's.
func TestHeaderHasTheLayoutOfTheServer(t *testing.T) {
	seen := map[string]int{}
	place := regexp.MustCompile(`(?m)^PT_AT\((\w+), (\w+), (\d+)\);$`)
	for _, found := range place.FindAllStringSubmatch(header(t), -1) {
		in := placesInGo[found[1]]
		name := in.names[found[2]]
		if name == "" {
			name = strings.ReplaceAll(found[2], "_", "")
		}
		at, ok := offsetOf(in.of, name)
		if !ok || fmt.Sprint(at) != found[3] {
			t.Errorf("%s.%s lies at %s, in Go at %d (known: %t)", found[1], found[2], found[3], at, ok)
		}
		seen[found[1]]++
	}
	if seen["pt_request"] < 10 || seen["pt_record"] < 20 || seen["pt_top"] != 6 {
		t.Errorf("looked at %v", seen)
	}
}

// offsetOf finds a field by its name, whatever its capitals.
func offsetOf(all []reflect.Type, name string) (uintptr, bool) {
	for _, of := range all {
		f, ok := of.FieldByNameFunc(func(f string) bool { return strings.EqualFold(f, name) })
		if ok {
			return f.Offset, true
		}
	}
	return 0, false
}

// TestHeaderNamesWhatTheServerNames: the words of statuses, codes and reasons, in their order.
func TestHeaderNamesWhatTheServerNames(t *testing.T) {
	var status, code, reason []string
	for s := range matcher.StatusRejected + 1 {
		status = append(status, s.String())
	}
	for c := range wire.Codes {
		code = append(code, wire.Code(c).String())
	}
	for r := range matcher.ReasonCount {
		reason = append(reason, r.String())
	}
	for function, want := range map[string][]string{"pt_status_name": status, "pt_code_name": code,
		"pt_reason_name": reason} {
		_, text, _ := strings.Cut(header(t), function+"(uint8_t")
		text, _, _ = strings.Cut(text, "};")
		var got []string
		for _, word := range regexp.MustCompile(`"([A-Z_]+)"`).FindAllStringSubmatch(text, -1) {
			got = append(got, word[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has %v\nwant %v", function, got, want)
		}
	}
}
