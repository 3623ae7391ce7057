// Package securities is the reference-data service behind its endpoints. What it
// promises about versions, outbox and snapshots is in package source.
package securities
