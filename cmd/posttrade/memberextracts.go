package main

import (
	"log/slog"

	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/sidecars/riskextract"
)

// memberExtracts renders the cut of every marker on a member. While the member leads without
// sidecars, it also writes the artifacts; with sidecars those write them.
type memberExtracts struct {
	c     *settings.Config
	in    *installation
	log   *slog.Logger
	loops *loops // nil while it is stopped
}

// start begins with a role. Only one goroutine may call start and stop.
func (m *memberExtracts) start(role string) {
	m.stop()
	m.loops = newLoops(m.log)
	x := newExtracts(m.c, m.in.core, nil, nil, role, m.log)
	m.loops.startAt(journal.Bulk, "risk extract", x.extractor.Run)
}

func (m *memberExtracts) stop() {
	if m.loops != nil {
		m.loops.stop()
		m.loops = nil
	}
}

// lead makes this member the one that writes the artifacts.
func (m *memberExtracts) lead() {
	if m.c.Bool("sidecars.enabled") {
		m.stop()
		return
	}
	m.start(riskextract.RoleLeader)
}

// follow makes this member one that only renders.
func (m *memberExtracts) follow() { m.start(riskextract.RoleFollower) }
