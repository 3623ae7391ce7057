// Package securities is the reference-data service behind its endpoints: the table of securities
// and their changes, one of the two control sources. Package source states its guarantees about
// versions, outbox and snapshots; this package says what a security is.
//
// A security is known by its ticker, 1 to 16 of A-Z, 0-9, dot and dash; blanks around it are cut
// and small letters become capitals before it is stored or compared. It is tradable when it is
// enabled and not halted. It is never removed. A change that leaves a flag out keeps the flag's
// value, in the same transaction.
//
// Errors: ErrStock for a security that is none, control.ErrCapacity when the engine has no room for
// another one; neither changes anything. The database's errors come back as they are. Any
// goroutine.
package securities
