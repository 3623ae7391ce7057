// Package accounts is the account-service behind its endpoints. Package source states its
// guarantees about versions, outbox and snapshots.
package accounts
