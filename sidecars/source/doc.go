// Package source keeps the records of one control source in the database, and
// every change of them as a version on its control feed. The account-service and
// the reference-data service are two tables of it.
//
//	Upsert   ─► one transaction: next version, record, outbox row ─► Changed ─► outbox ─► stream
//	Snapshot ─► one read snapshot: all records, and the version of the last change
//
// What holds: a record is in its table exactly when its last change is in the
// outbox; versions have no hole and are in the order of the commits; a snapshot
// holds every change up to its watermark and none after it. An upsert is a
// change even when it says what is there already: it gets a version, and the
// replicas a delta. A flag that an upsert does not say stays, and its record says
// which change said it last. A new record for which the engine behind the replicas
// has no room is refused, counted while the counter row is held (Room).
//
// Any goroutine may call. The package publishes nothing and knows no HTTP.
package source
