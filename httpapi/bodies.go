package httpapi

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// The errors of a body whose JSON is well-formed. Their texts contain nothing of the input.
var (
	errUnknownField   = errors.New("unknown member")
	errMissingField   = errors.New("required field is missing")
	errChoice         = errors.New("not one of the allowed values")
	errText           = errors.New("not printable ASCII of the allowed length")
	errLimitPrice     = errors.New("LIMIT needs limitPrice, MARKET refuses it")
	errPostOnlyMarket = errors.New("MARKET cannot be POST_ONLY")
	errNoItems        = errors.New("an array of at least one item is expected")
	errBatchSize      = errors.New("an array of 1 to 1024 orders is expected")
)

// accountControl is the body of POST /risk/control/account.
type accountControl struct {
	accountID uint32
	enabled   bool
}

// accountControl reads the body; both members are required.
func (d *decoder) accountControl() (c accountControl) {
	var account, enabled bool
	for key := range d.members {
		switch string(key) {
		case "accountId":
			c.accountID, account = d.accountID(), true
		case "enabled":
			c.enabled, enabled = d.flag("enabled"), true
		default:
			d.unknown(key)
		}
	}
	d.require("accountId", account)
	d.require("enabled", enabled)
	return c
}

// securityControl is the body of POST /risk/control/security.
type securityControl struct {
	security        []byte
	enabled, halted bool
}

// securityControl reads the body; all members are required. A caller that changes one flag repeats
// the other.
func (d *decoder) securityControl() (c securityControl) {
	var security, enabled, halted bool
	for key := range d.members {
		switch string(key) {
		case "security":
			c.security, security = d.security(), true
		case "enabled":
			c.enabled, enabled = d.flag("enabled"), true
		case "halted":
			c.halted, halted = d.flag("halted"), true
		default:
			d.unknown(key)
		}
	}
	d.require("security", security)
	d.require("enabled", enabled)
	d.require("halted", halted)
	return c
}

// restriction is the body of POST /risk/control/restriction.
type restriction struct {
	security   []byte
	restricted bool
}

// restriction reads the body; both members are required.
func (d *decoder) restriction() (c restriction) {
	var security, restricted bool
	for key := range d.members {
		switch string(key) {
		case "security":
			c.security, security = d.security(), true
		case "restricted":
			c.restricted, restricted = d.flag("restricted"), true
		default:
			d.unknown(key)
		}
	}
	d.require("security", security)
	d.require("restricted", restricted)
	return c
}

// policy is the body of POST /risk/control/policy. 0 leaves a limit as it is.
//
// It sets two of the limits; POST /risk/control/limits sets each of them.
type policy struct {
	version          int64
	killSwitch       bool
	maxPosition      int32
	maxConcentration int64 // x 1e6
}

// policy reads the body: version and kill switch are required, a version of 1 or more.
func (d *decoder) policy() (p policy) {
	var version, kill bool
	for key := range d.members {
		switch string(key) {
		case "policyVersion":
			p.version, version = d.whole("policyVersion", 1, math.MaxInt64), true
		case "killSwitch":
			p.killSwitch, kill = d.flag("killSwitch"), true
		case "maxPositionQuantity":
			p.maxPosition = d.quantity()
			d.field = "maxPositionQuantity"
		case "maxConcentrationNotional":
			p.maxConcentration = d.price("maxConcentrationNotional")
		default:
			d.unknown(key)
		}
	}
	d.require("policyVersion", version)
	d.require("killSwitch", kill)
	return p
}

// flag reads true or false; other values are an error of type.
func (d *decoder) flag(field string) bool {
	d.field = field
	return d.json.Bool()
}

// require refuses an object that does not have a member. After another error it changes nothing: a
// member that could not be read is not missing.
func (d *decoder) require(field string, seen bool) {
	if !seen && d.json.Err() == nil {
		d.field = field
		d.fail(errMissingField)
	}
}

// unknown refuses a member that the object does not have. The error names the member.
func (d *decoder) unknown(key []byte) {
	d.stranger = string(key)
	d.fail(errUnknownField)
}

// maxQuoted is the number of bytes of a client's name that an answer repeats.
//
// A client's error must not become a long answer or a long log line.
const maxQuoted = 64

// quoted returns a client's name in quotes, printable whatever bytes it has.
func quoted(name string) string {
	if len(name) > maxQuoted {
		return strconv.QuoteToASCII(name[:maxQuoted]) + "..."
	}
	return strconv.QuoteToASCII(name)
}

// plainName returns a client's name as it is, if it is short and printable, and otherwise as quoted
// does, without the quotes.
func plainName(name string) string {
	if printable([]byte(name), maxQuoted) {
		return name
	}
	return strings.ReplaceAll(quoted(name), `"`, "")
}

// bodyProblem is the problem of a body that cannot be read.
//
// index is the item of an array, -1 outside of one; an error of the text as a whole shows none.
// field names the member: the unknown one, the one that is there twice, or the one that was read
// last; "" when the text as a whole is wrong.
func (d *decoder) bodyProblem(err error, index int) problem {
	detail, field := err.Error(), d.field
	switch {
	case errors.Is(err, strictjson.ErrTrailing), errors.Is(err, errBatchSize):
		field, index = "", -1
	case errors.Is(err, errUnknownField):
		detail, field = quoted(d.stranger)+": "+detail, plainName(d.stranger)
	case errors.Is(err, strictjson.ErrDuplicateKey):
		twice := string(d.json.Duplicate())
		detail, field = quoted(twice)+": "+detail, plainName(twice)
	case field != "":
		detail = "field " + field + ": " + detail
	}
	if index >= 0 {
		detail = "item " + itoa(uint64(index)) + ": " + detail
	}
	return problem{status: 400, code: CodeMalformedBody, detail: detail, field: field}
}

// command builds the record of an admission, without its idempotency key. The security is what
// Decider.Security returns: the gate's id, or, when no security has the ticker, a number that
// stands for it.
func (o *orderRequest) command(kind matcher.CommandType, securityID uint32, timeMillis int64,
	cmd *matcher.Command) {
	*cmd = matcher.NewCommand(kind)
	cmd.EventTimeMillis = timeMillis
	cmd.LimitPx = o.limitPx
	cmd.AccountID, cmd.SecurityID = o.accountID, securityID
	cmd.Qty, cmd.Side, cmd.Flags = o.qty, o.side, o.flags
}
