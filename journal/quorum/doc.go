// Package quorum makes several members of one engine: a majority agrees on whatever is submitted on
// the leader before any member's engine sees it. It is the only importer of the consensus library,
// github.com/hashicorp/raft.
//
//	leader    desk ─► PROPOSAL RING ─► proposer ─► entry ─► raft log ═══════════╗ to the others
//	                                                           │ a majority has it on disk
//	every     ◄── its own journal ◄─ recorder ◄─ matcher ◄─ INPUT RING ◄─ fsm ◄─┘
//	member
//
// An entry holds many commands of 64 bytes, whole submissions only, and the client ids that came
// with them. The engine counts: on every member, the first command of an entry has the sequence
// after the last one of the entry before. Entries of two other kinds carry the genesis (the first
// one counts) and the announcement of a new leader.
//
// # What a member has on its disk
//
//	quorum/identity    the server's id: the member's number and digits drawn when the disk was empty;
//	                   with its SHA-256
//	quorum/log         the raft log, its term and vote, and an anchor: a Pebble store of its own
//	quorum/snapshots   records: up to this entry, the journal holds the commands up to this sequence
//	journal            the member's journal, in mode "os": the log has what a power cut takes from it
//	journal.incoming   a journal that the leader has sent, until the next start puts it in place
//
// The log is cut off only behind a record, and a record is written only when the journal has on
// stable storage what the record stands for. So after any crash log and journal together have every
// command that this member has ever confirmed. Commands that the journal has are not applied again:
// their sequences identify them.
//
// A member that is too far behind for the log gets the leader's whole journal, behind a record, as
// a snapshot of the library. A restart of the installation puts that journal in place, and ordinary
// recovery follows: every member has the whole history, and gives the same reports.
//
// # Membership
//
// The first start begins the cluster when every member of the list has answered and none has any
// state; the member with the lowest number does it. While one member is silent nothing begins: its
// disk could hold what the others have lost. A member that has lost its disk draws a new identity
// and asks to join; the leader removes the lost identity first. Streams are opened to an identity,
// not to an address. So the disk that replaces a lost one never answers what is meant for the lost
// disk: it could give a vote that the lost disk has given already.
//
// When the disks of a majority are lost, an operator makes the last one the only one (alone.go): it
// keeps its log, which may have confirmed commands that its journal lacks. A journal without a log
// begins a cluster by adoption (adopt.go).
//
// # What holds
//
//   - A submission is agreed on as a whole, once, or not at all. Host.Refuse is called only when it
//     is certain that the submission never will be agreed. What the node cannot know (leadership
//     lost on the way) stays open until the log shows it.
//   - Leads is true only when everything agreed before has been handed to this member's engine.
//   - An entry counts when a majority has it on disk. A leader's commands are on their way to the
//     others while its own disk syncs them; no member applies them before (logahead.go).
//   - A member that does not lead hands over what it knows to be agreed within 5 ms, many commands
//     at once (applyqueue.go).
//   - The first failure of the log's disk, or an entry that this version cannot read, is final:
//     Fatal is called, and nothing is confirmed or applied after it.
//   - The rules after a lost leadership need no clock: a leader that cannot reach a majority cannot
//     have anything agreed, and Confirm asks the majority.
//
// # Goroutines
//
//	proposer        takes submissions off the ring, proposes entries       propose.go
//	reaper          waits for what becomes of them                         propose.go
//	the library's   store, send and apply entries                          fsm.go, logstore.go
//	syncer          writes what a leader has stored ahead                  logahead.go
//	anchor          syncs the log's anchor                                 logwrite.go
//	role            follows elections, turns leading on and off            role.go
//	compactor       cuts the log off behind a new record                   role.go
//	join            asks while this disk has no vote                       discover.go
//	watchLeader     stands for election when the leader's process is gone  watch.go
//	accept          takes connections; one more for each until it settles  wire.go
//
// Node.Close ends them all. After a failure of the log some stay in calls that do not return, until
// the process ends (libraryview.go).
package quorum
