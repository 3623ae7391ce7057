// Package accounts is the account-service behind its endpoints: the table of accounts and their
// changes, one of the two control sources. Package source states its guarantees about versions,
// outbox and snapshots; this package says what an account is.
//
// An account has an id above 0, a name (source.ValidName) and a flag. An account is disabled, never
// removed: its orders, positions and trades stay. A change that leaves the flag out keeps the value
// that the account has, in the same transaction, so it cannot undo a change that came between.
//
// Errors: ErrAccount for an account that is none, control.ErrCapacity when the engine has no room
// for another one; neither changes anything. The database's errors come back as they are. Any
// goroutine.
package accounts
