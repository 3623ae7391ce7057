package installation

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/matcher"
	"posttrade/matcher/desk"
)

// capacitySettings are the settings that a start can raise. The genesis record keeps the capacities
// that the journal began with; commands behind it set those that are in force.
//
// of gives the place of a capacity, so that one loop compares and sets all of them.
var capacitySettings = []struct {
	name string
	of   func(*matcher.Capacities) *int
}{
	{"risk.max-accounts", func(c *matcher.Capacities) *int { return &c.Accounts }},
	{"risk.max-securities", func(c *matcher.Capacities) *int { return &c.Securities }},
	{"risk.max-contracts", func(c *matcher.Capacities) *int { return &c.Contracts }},
	{"risk.max-open-orders", func(c *matcher.Capacities) *int { return &c.Open }},
	{"risk.retained-orders", func(c *matcher.Capacities) *int { return &c.Retained }},
	{"risk.idempotency.capacity", func(c *matcher.Capacities) *int { return &c.Keys }},
}

// capacities are the capacities that a start asks for: those in force, with every setting that was
// set to something larger. A smaller one is refused by name, because the contents of the tables
// cannot be given up. A member keeps the larger one, which the leader has asked for, and logs that.
//
// genesis are the capacities that the journal began with. On a member a value between those and
// the ones in force is likely the setting of a member that was not changed when the leader's was.
// The last two checks refuse combinations that no engine can have memory for. Errors are usage
// errors.
func capacities(c *settings.Config, genesis, inForce matcher.Capacities,
	log *slog.Logger) (matcher.Capacities, error) {
	limits, wanted := c.Limits(), inForce
	asked := limits.Capacities()
	for _, s := range capacitySettings {
		if c.Source(s.name) == "default" {
			continue
		}
		value, room := *s.of(&asked), s.of(&wanted)
		switch {
		case value > *room:
			*room = value
		case value < *room && value >= *s.of(&genesis) && c.Clustered():
			log.Warn("a capacity can only be raised: what the cluster has agreed on stays", "setting",
				s.name,
				"value", value, "in force", *room)
		case value < *room:
			return wanted,
				settings.Usagef("%s: %d is less than the %d in force, and a capacity can only be raised; "+
					"leave the setting out, or start with an empty data.dir", s.name, value, *room)
		}
	}
	if !wanted.OrderRoom.Possible() {
		return wanted, settings.Usagef(
			"risk.max-open-orders: %d and risk.retained-orders %d are more than an engine can hold",
			wanted.Open, wanted.Retained)
	}
	if !wanted.Possible() {
		return wanted, settings.Usagef(
			"risk.max-accounts: %d times risk.max-securities %d is more than an engine can hold",
			wanted.Accounts, wanted.Securities)
	}
	return wanted, nil
}

// raiseTimeout is how long a raise is tried while the desk has no room for it. The wait for the
// answer to a command that was taken in has no bound of its own.
const raiseTimeout = 10 * time.Second

// raise sets the capacities by a command like any other, so that every replay and every member has
// the same room at the same sequence.
//
// A refusal by the engine is an error with its reason.
func raise(c *engine.Engine, ctx context.Context, wanted matcher.Capacities,
	log *slog.Logger) error {
	was := c.Views.Capacities()
	if wanted == was {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, raiseTimeout)
	defer cancel()
	err := desk.SubmitUntil(ctx, c.Desk, 1, func(_ int, cmd *matcher.Command) error {
		*cmd = matcher.NewCapacityControl(risen(was, wanted))
		cmd.EventTimeMillis = time.Now().UnixMilli()
		return nil
	}, func(a *desk.Answer) error {
		if a.Kind != matcher.EventApplied {
			return fmt.Errorf("sequence %d was refused: %v", a.InputSeq, a.Reason)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("raise capacities: %w", err)
	}
	log.Info("capacities raised", "accounts", wanted.Accounts, "securities", wanted.Securities,
		"contracts", wanted.Contracts, "openOrders", wanted.Open, "retainedOrders", wanted.Retained,
		"keys", wanted.Keys, "before", fmt.Sprint(was))
	return nil
}

// risen is what the command says. Builds that cannot raise the room for orders read a record that
// leaves it as it is.
func risen(was, wanted matcher.Capacities) matcher.Capacities {
	if wanted.OrderRoom == was.OrderRoom {
		wanted.OrderRoom = matcher.OrderRoom{}
	}
	return wanted
}

// RaiseCapacities sets what the settings ask for, in an engine that runs alone.
//
// It blocks until the command is durable. The error is that of ctx when the desk has had no room
// for raiseTimeout.
func RaiseCapacities(ctx context.Context, c *settings.Config, k *engine.Engine,
	log *slog.Logger) error {
	wanted, err := capacities(c, k.Genesis.Limits.Capacities(), k.Views.Capacities(), log)
	if err != nil {
		return err
	}
	return raise(k, ctx, wanted, log)
}

// wanted is what the settings ask for, given what is in force.
//
// It also checks the settings: the start calls it before a service listens.
func (in *Installation) wanted(c *settings.Config, log *slog.Logger) (matcher.Capacities, error) {
	return capacities(c, in.Core.Genesis.Limits.Capacities(), in.Core.Views.Capacities(), log)
}

// raise sets what the settings ask for, on a node that may do so: a single node or the leader.
func (in *Installation) raise(ctx context.Context, c *settings.Config, log *slog.Logger) error {
	return RaiseCapacities(ctx, c, in.Core, log)
}
