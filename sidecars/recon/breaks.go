package recon

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// The bounds of a page of breaks.
const (
	DefaultBreaks = 100
	MaxBreaks     = 1000
)

// ErrKey reports a page key that Breaks did not return.
var ErrKey = errors.New("not a key of a page of breaks")

// BreakQuery selects a page of the open breaks.
//
// A key is valid as long as it is used with the same Class. A list that changes between two pages
// may show a break twice or not at all; a break that stays open behind the key is always shown.
type BreakQuery struct {
	Class    Class  // "": all classes, one after the other
	AfterKey string // the next of the page before; "": the first page
	Limit    int    // 0: DefaultBreaks; at most MaxBreaks
}

// classes are the classes in the order in which Breaks lists them.
var classes = [...]Class{MissingInProjection, FieldMismatch, OrphanInProjection, External}

// place is where a page begins: after a break of a class.
type place struct {
	class int    // index in classes
	seq   uint64 // after this entry
	id    string // of an orphan, which may be empty, or of a line of the statement
	from  string // how ids are compared with id: ">", or ">=" for all of them
}

// key is the text of a place: base64url, without padding, of the digit of the class and the trade
// sequence, or the id where the class has no trade sequence. Clients pass it back unread.
func (p place) key() string {
	text := strconv.Itoa(p.class) + strconv.FormatUint(p.seq, 10)
	if classes[p.class] == OrphanInProjection || classes[p.class] == External && p.seq == 0 {
		text = strconv.Itoa(p.class) + p.id
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// placeOf returns where the page that q asks for begins.
//
// It accepts any trade sequence and any id: a break need not be open any more for its key to work.
func placeOf(q BreakQuery) (p place, err error) {
	if q.Class != "" {
		if p.class = slices.Index(classes[:], q.Class); p.class < 0 {
			return p, fmt.Errorf("class %q: %w", q.Class, ErrKey)
		}
	}
	if p.from = ">="; q.AfterKey == "" {
		return p, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(q.AfterKey)
	if err != nil || len(text) == 0 {
		return p, ErrKey
	}
	class := int(text[0]) - '0'
	if class < 0 || class >= len(classes) || q.Class != "" && class != p.class {
		return p, ErrKey
	}
	p.class = class
	if classes[class] == OrphanInProjection ||
		classes[class] == External && store.ExternalID(string(text[1:])) {
		p.id, p.from = string(text[1:]), ">"
		return p, nil
	}
	if p.seq, err = strconv.ParseUint(string(text[1:]), 10, 62); err != nil {
		return p, ErrKey
	}
	return p, nil
}

// Breaks returns a page of the open breaks: those of one class by trade sequence, orphans by id.
// next is the AfterKey of the following page, "" when there is none. Errors: ErrKey,
// store.ErrUnavailable, errors of reading the journal.
//
// All breaks of a page are of one snapshot. The fills are read after it, because they never change.
// A break above the durable head has no Journal.
func (r *Recon) Breaks(ctx context.Context, q BreakQuery) (page []Break, next string, err error) {
	from, err := placeOf(q)
	if err == nil && r.o.DB.Dialect() == store.Postgres && !store.PostgresText(from.id) {
		err = ErrKey
	}
	if err != nil {
		return nil, "", fmt.Errorf("recon: list breaks: %w", err)
	}
	limit := q.Limit
	if limit <= 0 {
		limit = DefaultBreaks
	}
	limit = min(limit, MaxBreaks)
	l := list{r: r, limit: limit + 1} // one more shows whether there is a next page
	err = r.o.DB.Read(ctx, func(tx *store.Tx) error {
		l.items, l.external, l.books = nil, make(map[string]uint64), make(map[uint64]expectation)
		if err := l.read(tx, from, q.Class == ""); err != nil {
			return err
		}
		return l.readRows(tx)
	})
	if err != nil {
		return nil, "", fmt.Errorf("recon: read breaks: %w", err)
	}
	if len(l.items) > limit {
		l.items = l.items[:limit]
		last := &l.items[limit-1]
		at := place{class: slices.Index(classes[:], last.Class), seq: last.TradeSeq, id: last.TradeID}
		if last.Class == External {
			at.seq = l.external[last.TradeID]
		}
		next = at.key()
	}
	if err := r.showJournal(l.items, l.books); err != nil {
		return nil, "", fmt.Errorf("recon: read fills of breaks: %w", err)
	}
	return l.items, next, nil
}

// list gathers a page of breaks.
//
// It belongs to one call of Breaks. read fills items, readRows adds the rows, showJournal the
// fills.
type list struct {
	r *Recon
	// limit is one above the page's, to see whether there is a next one.
	limit int
	round int64 // start of the last complete round of the re-check
	items []Break

	external map[string]uint64      // the trade_seq of the bookings from outside among items
	books    map[uint64]expectation // by the trade sequence of the items with a fill
}

// read lists the breaks from a place on, with onward also those of the classes behind it.
func (l *list) read(tx *store.Tx, from place, onward bool) error {
	b, err := readBooks(tx)
	if err != nil {
		return err
	}
	l.round = ownTime(&l.r.lastRound, b.recheckedMillis)
	for class := from.class; class < len(classes) && len(l.items) < l.limit; class++ {
		switch classes[class] {
		case MissingInProjection:
			err = l.missing(tx, from.seq)
		case FieldMismatch:
			err = l.mismatches(tx, from.seq)
		case OrphanInProjection:
			err = l.orphans(tx, from)
		case External:
			err = l.outside(tx, from)
		}
		if err != nil || !onward {
			return err
		}
		from = place{from: ">="}
	}
	return nil
}

// seen is when a break was last seen: when its record was written, or in the last complete round of
// the re-check, which found it open as well.
func (l *list) seen(first, last int64) int64 {
	if l.round >= first {
		return max(last, l.round)
	}
	return last
}

// missing lists the entries of the gaps that count, one by one: a gap of millions gives a page at a
// time. The first gap may begin before after.
func (l *list) missing(tx *store.Tx, after uint64) error {
	return tx.Query(selectGaps+" and counted = 1 order by lo limit $2", func(row *store.Row) error {
		g := scanGap(row)
		for seq := max(g.lo, after+1); seq <= g.hi && len(l.items) < l.limit; seq++ {
			l.items = append(l.items, Break{
				Class: MissingInProjection, TradeID: matcher.TradeID(seq), TradeSeq: seq,
				FirstSeenMillis: g.firstSeen, LastSeenMillis: l.seen(g.firstSeen, g.firstSeen),
			})
		}
		return nil
	}, after+1, l.limit-len(l.items))
}

// mismatches lists the entries that differ, each with the row as it was judged.
func (l *list) mismatches(tx *store.Tx, after uint64) error {
	return tx.Query(selectDiffers+" order by trade_seq limit $2", func(row *store.Row) error {
		m := scanMismatch(row)
		l.items = append(l.items, Break{
			Class: FieldMismatch, TradeID: matcher.TradeID(m.seq), TradeSeq: m.seq,
			Fields: m.fields.names(), Projection: &m.row,
			FirstSeenMillis: m.firstSeen, LastSeenMillis: l.seen(m.firstSeen, m.lastMillis),
		})
		return nil
	}, after+1, l.limit-len(l.items))
}

// orphans lists rows without a fill, by the bytes of their ids.
func (l *list) orphans(tx *store.Tx, from place) error {
	return tx.Query(
		"select id, trade_seq, "+tradeColumns+" from recon_orphans where id "+from.from+" $1 "+
			"order by id limit $2",
		func(row *store.Row) error {
			trade := scanTrade(row, 2)
			l.items = append(l.items, Break{
				Class: OrphanInProjection, TradeID: row.Text(0), TradeSeq: uint64(row.Int64(1)),
				Projection:      &trade,
				FirstSeenMillis: row.Int64(8), LastSeenMillis: row.Int64(9),
			})
			return nil
		}, from.id, l.limit-len(l.items))
}

// showJournal adds the fills of the breaks that have one. The items of each class are ascending, so
// neighbouring fills are read together.
//
// It takes no lock of the walks, so a page does not wait for a chunk.
func (r *Recon) showJournal(items []Break, books map[uint64]expectation) error {
	e := entries{journal: r.o.Journal, blotter: r.o.Blotter} // r.entries belongs to the walks
	_, head := r.o.Journal.Head()
	for len(items) > 0 {
		if !items[0].hasFill() || items[0].TradeSeq > head {
			items = items[1:]
			continue
		}
		n := 1
		for n < len(items) && items[n].Class == items[0].Class && items[n].TradeSeq <= head &&
			items[n].TradeSeq-items[n-1].TradeSeq <= r.bounds.near {
			n++
		}
		rest := items[:n]
		err := e.fromBlotter(items[0].TradeSeq, items[n-1].TradeSeq, func(fills []matcher.Fill) error {
			for i := range fills {
				if len(rest) > 0 && rest[0].TradeSeq == fills[i].TradeSeq {
					trade := tradeOfFill(&fills[i], r.o.Ticker(fills[i].SecurityID))
					rest[0].Journal = &trade
					rest[0].JournalDetails = books[fills[i].TradeSeq].of(&fills[i], &rest[0])
					rest = rest[1:]
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		items = items[n:]
	}
	return nil
}
