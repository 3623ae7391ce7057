// Package securities is the reference-data service behind its endpoints. Package source states its
// guarantees about versions, outbox and snapshots.
package securities
