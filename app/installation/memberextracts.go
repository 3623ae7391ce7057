package installation

import (
	"log/slog"

	"posttrade/app/settings"
	"posttrade/journal"
	"posttrade/sidecars/riskextract"
)

// memberExtracts renders the cut of every marker on a member. While the member leads without
// sidecars, it also writes the artifacts; with sidecars those write them.
//
// Without a database there are no closing marks, so the cursor is in a file and survives the
// process.
type memberExtracts struct {
	c     *settings.Config
	in    *Installation
	log   *slog.Logger
	loops *loops // nil while it is stopped
}

// start begins with a role. Only one goroutine may call start and stop.
//
// role is RoleLeader or RoleFollower of riskextract. The loops of the former role have ended
// before the new ones begin.
func (m *memberExtracts) start(role string) {
	m.stop()
	m.loops = newLoops(m.log)
	x := NewExtracts(m.c, m.in.Core, nil, nil, role, m.log)
	m.loops.startAt(journal.Bulk, "risk extract", x.Extractor.Run)
}

// stop waits for the loops. It may be called again.
func (m *memberExtracts) stop() {
	if m.loops != nil {
		m.loops.stop()
		m.loops = nil
	}
}

// lead makes this member the one that writes the artifacts.
//
// With sidecars it stops: their own extractor writes the artifacts, with the marks of the
// database.
func (m *memberExtracts) lead() {
	if m.c.Bool("sidecars.enabled") {
		m.stop()
		return
	}
	m.start(riskextract.RoleLeader)
}

// follow makes this member one that only renders.
func (m *memberExtracts) follow() { m.start(riskextract.RoleFollower) }
