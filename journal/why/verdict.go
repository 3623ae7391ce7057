package why

import (
	"encoding/json"
	"fmt"
	"strconv"

	"posttrade/matcher"
)

// gateRefused explains a verdict that the engine's checks do not repeat: the gate judged by what it
// knew a moment before, or by what the engine does not check. The history has the verdict and none
// of what the gate knew, so there are no two sides, only what is on record beside it. Where no
// verdict is on record either, the sentence has the reason alone.
func (q *inquiry) gateRefused(reason matcher.RiskReason) (err error) {
	x := q.x
	if x.DecidedBy != "gate" {
		x.Text = fmt.Sprintf("%s was refused with %s.", capital(q.what()), reason)
		return nil
	}
	known := "by what it knew a moment before the engine took the command"
	switch reason {
	case matcher.NotEntitled:
		x.ruled("entitlement")
		known = fmt.Sprintf("because its token did not cover account %d: the journal has no tokens, so"+
			" the verdict is all that is on record", q.cmd.AccountID)
	case matcher.ControlStateStale:
		x.ruled("control-state")
		known = "because its state of accounts and stocks was not current: "
		if err = q.sourceCauses(); len(x.Because) == 0 {
			known += "no control from their sources is on record before it"
		} else {
			known += "the newest controls from their sources before it are those in because"
		}
	case matcher.InternalPolicyError:
		x.ruled("gate-verdict")
		verdict := q.cmd.OrderRef
		x.Observed = &Side{json.RawMessage(strconv.FormatUint(uint64(verdict), 10)),
			string(matcher.UnitNumber)}
		known = "because a check of its own went wrong: its verdict is number " +
			strconv.FormatUint(uint64(verdict), 10)
		if verdict != uint32(matcher.InternalPolicyError) {
			known += ", which is no reason that a gate gives"
		}
	}
	x.Text = fmt.Sprintf("%s was refused by the gate with %s, %s.", capital(q.what()), reason, known)
	return err
}

// ruled sets the rule where no judgement has one: it names what decided at the gate.
func (x *Explanation) ruled(rule string) { x.Rule = &rule }

// sourceCauses names the newest control of each source, of accounts and of stocks: they show how
// current the state of the installation was. A control by hand carries no mark and is passed over.
func (q *inquiry) sourceCauses() error {
	for _, source := range []struct {
		what string
		kind matcher.CommandType
	}{{"newest account control from its source", matcher.AccountControl},
		{"newest security control from its source", matcher.SecurityControl}} {
		c, ok, err := lastCommand(q.ctx, q.j, q.x.InputSeq-1, func(c *matcher.Command) bool {
			return c.Type == source.kind && c.OrderRef != 0
		})
		if err != nil {
			return err
		}
		if ok {
			q.x.because(source.what, "version "+strconv.FormatInt(c.PriceTicks, 10), c.InputSeq,
				c.EventTimeMillis)
		}
	}
	return nil
}
