// Package source keeps the records of one control source in the database, and records every change
// of them as a version on its control feed. The account-service and the reference-data service are
// two instances of it.
//
//	Upsert   ─► one transaction: next version, record, outbox row ─► Changed ─► outbox ─► stream
//	Snapshot ─► one read snapshot: all records, and the version of the last change
//
// What holds: a record is in its table exactly when its last change is in the outbox. Versions have
// no hole and are in the order of the commits. A snapshot holds every change up to its watermark
// and none after it. An upsert is a change even when it changes no value: it gets a version, and
// the replicas get a delta. A flag that an upsert does not set stays, and its record keeps the
// version of the change that set it last. A new record is refused when the engine behind the
// replicas has no room for it; the count is taken while the counter row is locked (Capacity).
//
// Any goroutine may call. The package publishes nothing and does not use HTTP.
package source
