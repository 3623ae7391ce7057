package replay

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"posttrade/perf/orderflow"
)

// priceLook is how many steps of a flow are looked at for the first prices of its securities, so
// that a long flow is not read twice. A security that comes later has to do with the price that the
// venue has.
const priceLook = 200_000

// firstPrices returns the first limit price of each security in the beginning of a flow, in
// matcher's fixed point. A security that has only market orders there is not among them.
func firstPrices(flow orderflow.StepReader) (map[string]int64, error) {
	prices := map[string]int64{}
	var step orderflow.Step
	for range priceLook {
		if err := flow.Next(&step); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		if _, known := prices[step.Security]; !known && step.Security != "" && step.LimitPx > 0 {
			prices[step.Security] = step.LimitPx
		}
	}
	return prices, nil
}

// setPrices makes the venue's market prices those at which the flow begins. It reads the beginning
// of a second copy of the flow, over a connection of its own, before the flow is sent. A price that
// is refused ends the replay and names its security.
func (o *Flow) setPrices(open venues, rest []string) (err error) {
	flow, err := o.open(rest)
	if err != nil {
		return err
	}
	defer flow.close()
	prices, err := firstPrices(flow)
	if err != nil {
		return err
	}
	v, err := open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.close()) }()
	for _, security := range slices.Sorted(maps.Keys(prices)) {
		answer, err := v.price(&orderflow.Step{Action: orderflow.Price, Security: security,
			LimitPx: prices[security]})
		if err == nil && answer.verdict != accepted {
			err = errors.New(answer.reason)
		}
		if err != nil {
			return fmt.Errorf("replay: --set-prices: %s: %w", security, err)
		}
	}
	return nil
}

// otherPrices is the error of a flow of which most steps were refused for the market price, nil for
// any other: the times of such a replay are those of refusals. With --set-prices it is nil.
func (o *Flow) otherPrices(reasons map[string]int64, steps int64) error {
	refused := reasons["PRICE_COLLAR"] + reasons["PRICE_MISSING"] + reasons["PRICE_STALE"]
	if o.setsPrices || 2*refused <= steps {
		return nil
	}
	return fmt.Errorf("replay: %d of %d steps were refused for the market price: the server has other"+
		" prices than the flow; give --set-prices, with an admin token when --url is given", refused,
		steps)
}
