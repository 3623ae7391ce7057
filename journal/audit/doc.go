// Package audit makes the regulatory report: every lifecycle event of every
// order, trade and OTC contract in a range of input sequences, as lines of JSON.
//
//	             newest snapshot
//	             before the range          fromSeq            toSeq
//	history ───────────┬──────────────────────┬──────────────────┬──────►
//	                   └─ replayed in silence ┴─ replayed ───────┘
//	                                             │ events
//	                                             ▼
//	                                          records ──► chunks of whole lines ──► the caller
//
// A report is a pure function of the genesis record and the commands up to toSeq.
// It is made by a journal.Shadow of its own, so the same range gives the same
// bytes on every call, from whatever snapshot it starts, after a restart and on
// every member, and the reports of two adjoining ranges are the report of both.
// The names of securities, too, are those that were registered at the time.
//
// One line is one record: an object with exactly these members in this order,
// without blanks, and a newline. A member that does not apply is null.
//
//	kind             accept, reject, partial-fill, fill, cancel or trade-booked
//	sequence         the command's input sequence; the records of a command share it
//	orderId          ord-<number>; of an OTC booking the contract id, SW-<sequence> or
//	                 SWPT-<sequence>
//	tradeId          trd-<trade sequence> of an execution
//	accountId        the account
//	security         the ticker; null when no such security was registered by then
//	side             Buy or Sell; of an OTC contract Buy receives the fixed rate and Sell pays it
//	quantity         whole units; of an OTC contract the notional
//	price            as below, never with trailing zeros; null for a market order
//	timestampMillis  the command's own event time
//	riskReason       why something was refused, or cancelled by another than its owner
//
// Which records a command gives, in this order:
//
//	decision                  records
//	order accepted            accept: the whole quantity, the limit
//	order replaced            accept: the same order id, the new total quantity and limit
//	match, for each side,     partial-fill, or fill when nothing is left of the order: the executed
//	the aggressor first       quantity and price; then trade-booked, which differs in its kind only
//	order cancelled           cancel: the quantity taken back, the limit. riskReason is null when the
//	                          owner asked or the time in force ended it, else for example
//	                          SELF_TRADE_PREVENTED, or RESTRICTED under the sequence of the control
//	market trade              trade-booked, orderId null
//	force fill                partial-fill or fill, then trade-booked
//	OTC booking               trade-booked, tradeId null; the price is the fixed rate
//	anything of these refused reject
//	control, tick, symbol,    none of their own, accepted or refused
//	marker
//
// What a reject shows beside kind, sequence, accountId, timestampMillis and
// riskReason, which it always has:
//
//	refused          orderId                      security   side  quantity   price
//	order            its own reference; of a      yes        yes   asked      limit, null for market
//	                 DUPLICATE the order that
//	                 it repeats, if it is one
//	replace          the order asked about        yes        yes   asked      limit asked
//	cancel           the order asked about        if named   null  null       null
//	force fill       the order asked about        if named   null  asked      price asked
//	market trade     null                         yes        yes   asked      null
//	OTC booking      null                         null       yes   notional   fixed rate
//
// Every sequenced order, cancel, replace, market trade, force fill and OTC
// booking gives at least one record. The SHA-256 of a report is over all of its
// lines, newlines included.
//
// Memory stays flat for any range: one shadow engine, one chunk. Write runs on a
// thread of its own at the lowest priority, and only MaxConcurrent at a time. The
// package does not know of HTTP or compression, and never touches the engine that
// decides.
package audit
