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
// the services hand it to the desk. Serve opens an installation, waits, and stops it; the parts
// stop in the reverse order of their start.
package installation
