package acts

import (
	"encoding/json"

	"posttrade/matcher"
	"posttrade/matcher/note"
)

// parser turns commands, in their order and without a hole, into records. A walk owns it.
//
// It is in one of three states: no note (next and wanted are 0), the parts of a note are passing
// (next is above 0), or a whole note waits for its acts (wanted is above 0). A command that cannot
// belong to what was begun ends it.
type parser struct {
	// ticker names a security
	ticker func(id uint32) string
	// refused reports an act that the engine has refused. Acts are given to it in their order.
	refused func(c *matcher.Command) bool

	text []byte // of the note whose parts are passing
	// part is the first part of the note: its sequence and time, and what all parts of it must repeat.
	part matcher.Command
	// next is the number of the part that comes next; 0: none has begun.
	next uint32
	acts []matcher.Command // of the whole note that came last
	// wanted is how many acts the whole note is about; 0: no whole note waits.
	wanted int
	found  []Record // of the last command; reused
}

// take returns the records that end with a command, in memory that is good until the next call.
// text is the piece of the note that the command carries; it is nil for any command but a note's.
//
// A note is believed only when the commands behind it are as many as it says and have the hash that
// it carries. Commands that do not match are acts without a note. So a note whose commands a crash
// has cut off does not lend its subject to the commands of another.
func (p *parser) take(c *matcher.Command, text []byte) []Record {
	if c.TemplateID != matcher.TemplateCommand {
		return p.end()
	}
	p.found = p.found[:0]
	if c.Type == matcher.OperatorNote {
		p.takePart(c, text)
		return p.found
	}
	if p.wanted > 0 {
		if p.acts = append(p.acts, *c); len(p.acts) < p.wanted {
			return nil
		}
		if matcher.ActsHash(p.acts) == p.part.LimitPx {
			p.noted()
			p.drop()
			return p.found
		}
		// The note's own commands were never sequenced: these have no note.
		acts := p.acts
		p.drop()
		for i := range acts {
			p.alone(&acts[i])
		}
		return p.found
	}
	p.drop()
	p.alone(c)
	return p.found
}

// end returns the records of commands that still wait for others of their note: the history, or the
// stretch that is read, ends here.
func (p *parser) end() []Record {
	p.found = p.found[:0]
	for i := range p.acts {
		p.alone(&p.acts[i])
	}
	p.drop()
	return p.found
}

// alone adds the record of a command without a note, if the command is an act at all.
func (p *parser) alone(c *matcher.Command) {
	if r, ok := bare(c, p.ticker); ok {
		p.found = append(p.found, p.judged(c, r))
	}
}

// judged is a record of what has become of an act: itself, or that of an act that was refused. The
// engine's reason for a version that does not rise is INVALID; STALE_VERSION says more.
func (p *parser) judged(c *matcher.Command, r Record) Record {
	if refusable(c) && p.refused(c) {
		code := "STALE_VERSION"
		if c.Type == matcher.TokenRevoke {
			code = "CAPACITY"
		}
		r.refuse(code)
	}
	return r
}

// drop forgets a note.
func (p *parser) drop() { p.text, p.acts, p.next, p.wanted = p.text[:0], p.acts[:0], 0, 0 }

// takePart takes one part of a note. A first part begins a note, whatever came before.
func (p *parser) takePart(c *matcher.Command, text []byte) {
	if len(p.acts) > 0 {
		p.end()
	}
	if c.OrderRef == 0 {
		p.drop()
		p.part = *c
	} else if c.OrderRef != p.next || c.Qty != p.part.Qty || c.AccountID != p.part.AccountID ||
		c.LimitPx != p.part.LimitPx {
		p.drop() // its beginning is not there: a crash cut it, or the walk began here
		return
	}
	p.text = append(p.text, text...)
	if p.next = c.OrderRef + 1; p.next < uint32(c.Qty) {
		return
	}
	if p.wanted = int(c.AccountID); p.wanted == 0 {
		n := p.note()
		p.found = append(p.found,
			newRecord(n.Kind, p.part.InputSeq, p.part.EventTimeMillis, &n))
		p.drop()
	}
}

// note reads the text. What does not read is on record all the same, without its members: an act
// must not disappear because its text was written by another build.
func (p *parser) note() (n note.Note) {
	if json.Unmarshal(p.text, &n) != nil {
		return note.Note{Kind: "unreadable"}
	}
	return n
}

// noted makes the records of the note's commands: one for each price, else one with the sequence of
// the last command, which is the one that takes effect.
func (p *parser) noted() {
	n := p.note()
	var olds []json.RawMessage
	if n.Kind != note.Price || json.Unmarshal(n.Old, &olds) != nil || len(olds) != len(p.acts) {
		last := &p.acts[len(p.acts)-1]
		p.found = append(p.found, p.judged(last,
			newRecord(n.Kind, last.InputSeq, last.EventTimeMillis, &n)))
		return
	}
	for i := range p.acts {
		c := &p.acts[i]
		n.Object, n.Old = named("security", p.ticker(c.SecurityID)), olds[i]
		n.New = amount(c.PriceTicks)
		p.found = append(p.found, newRecord(n.Kind, c.InputSeq, c.EventTimeMillis, &n))
	}
}
