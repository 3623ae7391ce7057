// Package installation is the whole process: the engine, the services in front of it, and the
// sidecars behind it.
//
//	Open     reads the settings, recovers the engine, opens what a single node or a member needs
//	services the four HTTP services, their listeners, the administration's
//	sidecars database, broker, projection, settlement, reconciliation, costs, risk extracts
//	sources  accounts and securities: outbox, feed, replica, the gate's readiness
//	leading  what a member begins when it leads and ends when it follows
//	figures  what is gathered for metrics, the mapped counters and the flight recorder
//
// No rule about an order, a row or a message is here. An order's body never enters this package:
// the services hand it to the desk. ServeToTheEnd opens an installation, waits, and stops it; the
// parts stop in the reverse order of their start.
//
// # Single node and member
//
//	single  engine -> raised capacities -> sidecars -> services -> replicas of the sources
//	member  consensus and engine -> relays -> Attach
//	        when it leads: raised capacities -> sidecars -> services -> replicas
//
// A single node compares its journal with the neighbours before it opens it for writing. A member
// cannot: its commands come from the others. It compares the database when it begins to lead.
//
// # Goroutines
//
//   - Each listener has one that accepts; its server has one for each connection.
//   - loops are those of the sidecars and sources, each with one owner. A loop that fails is on
//     /readyz, and everything else goes on. They last as long as a single node, or one leadership.
//   - A member has one that begins and ends the leader's parts (roles), two of healing, and one
//     that compares the members' trees.
//   - scrubbing, past and the transparency log have one each, at a low priority.
//   - watching has one for each thing that is looked at: the stats file, the flight recorder, the
//     order numbers, systemd's heartbeat.
//
// None of them is on the path of an order. A control source that is not ready and Engine.Held are
// the two ways in which this package keeps orders from being admitted.
//
// # What must hold
//
//   - No row of the history is written before the database is known to be of this journal.
//   - What leaves the process (rows, extracts, signed heads) comes from commands on stable storage.
//   - The engine's memory is unmapped only when no request can use it: a stop in which a request
//     does not end leaves it to the end of the process.
package installation
