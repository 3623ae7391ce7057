// Package admission decides what becomes of a client's request between its decoding and the ring.
//
//	HTTP, sessions, replay --> Decide: key, order, journal, sources, gate --> Verdict
//	                           Settle <-- answer <-- desk <-- Admitted: handed in
//
// The edges decode a request, check the caller's entitlement with May, ask here, and translate the
// verdict into their own words. None of them has a rule of its own about keys, readiness,
// screening, terms or amendments, so all of them answer the same request in the same way:
// perf/replay/testdata/admission has the cases, which are played over every edge.
//
// The order of the checks, each of which can end them:
//
//  1. The key. A request whose key is known gets the first decision (Repeated), whatever the state
//     of the journal and of the sources is now, or is turned down when its terms differ (Differs).
//     Nothing is sequenced.
//  2. The order that an amendment names. It must be open (Ended).
//  3. The journal: it has failed (Failed), it is full (Full), or the database knows more (Held).
//  4. The control sources (NotReady). An owner can cancel an order without them.
//  5. The gate. A refusal is sequenced with the reason in the command, or, if the audit does not
//     ask for it, is the answer (Refused). A replace is not screened: its record names an order
//     where others have the gate's reason, and the engine judges it. The record of a booking has no
//     field for a reason either; the engine refuses whatever the gate refuses, and judges it again.
//
// A batch is admitted or turned away as a whole in steps 3 and 4, unless every order of it repeats
// another one; the other steps decide each order.
//
// What holds:
//   - A Request that is Admitted can be handed in as it is: key, verdict, and the terms of the
//     order that it amends are in its command.
//   - Only Admitted requests may be handed in.
//   - First of a Repeated request may be newer than what is durable. An edge shows it when it is.
//
// Any goroutine may call; a Request belongs to one. Nothing here allocates, locks or waits.
package admission
