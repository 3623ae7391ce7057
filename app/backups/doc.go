// Package backups connects the directories of journal/backup with a running process.
//
//	Server  resources of the admin listener: the journal behind a point, the rows that no journal
//	        gives again, and why a stream of the journal has ended early
//	Remote  the same, read over HTTP: the source of a backup
//	First   what the first start after a restore does: it puts the rows back and begins a new epoch
//	        of both control sources
//
// The resources ask for an admin token wherever the listener is: a journal holds every order, and
// the secret under which client order ids are hashed. One stream at a time is read, at the lowest
// priority, so a backup takes only what the path of an order leaves over.
package backups
