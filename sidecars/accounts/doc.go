// Package accounts is the account-service behind its endpoints. What it promises
// about versions, outbox and snapshots is in package source.
package accounts
