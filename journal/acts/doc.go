// Package acts reads operators' acts from the journal: GET /audit.
//
//	journal --> commands, in order --> notes and the commands that they are about --> records
//	                                   acts of builds that wrote no notes         -->
//
// A record is a function of the journal alone, so every member has the same ones, also after a
// restart. An act of a build that wrote no notes has a record without subject, address, reason and
// old value. Of such a build a price by hand is not there: its command is that of a price from the
// feed.
//
// A note that is not followed by its commands is no act: a crash came between. A policy that the
// engine has refused, because its version did not rise, has a record of the kind refused, and so
// has a revocation without room: which ones those are follows from the acts before.
//
// A reading costs a walk through the commands after fromSeq, of which nothing is decided again. The
// Reader remembers which stretches hold no act, and leaves them out the next time: a journal's past
// does not change. Any goroutine may use it.
//
// An act in the journal, and what becomes of it:
//
//	10  OPERATOR_NOTE   part 0 of 2, about 1 act, hash of the act
//	11  OPERATOR_NOTE   part 1 of 2
//	12  POLICY_CONTROL  -> record: sequence 12, kind and subject of the note
//	13  POLICY_CONTROL  -> record: sequence 13, kind by the command, subject null
package acts
