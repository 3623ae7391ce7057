package installation

import (
	"fmt"
	"time"

	"posttrade/httpapi"
	"posttrade/journal"
	"posttrade/matcher/gate"
	"posttrade/sidecars/control"
)

// coreParts are the conditions for the admission of an order. A follower needs no control source of
// its own: the leader's gate decides.
//
// A part that is not ready makes the process not ready, unless it works beside readiness. The list
// is made anew at each request, from atomics and small copies.
func (in *Installation) coreParts() []httpapi.Part {
	k := in.Core
	list := []httpapi.Part{{Name: "recovery", Ready: true,
		Detail: fmt.Sprintf("sequence %d in %s", k.Recovered.Sequence,
			k.Recovered.Took.Round(time.Millisecond))}}
	switch err := k.Journal.Err(); {
	case err != nil:
		list = append(list, httpapi.Part{Name: "journal", Detail: err.Error()})
	case k.Journal.StorageFull():
		list = append(list, httpapi.Part{Name: "journal", Detail: "storage full"})
	default:
		list = append(list, httpapi.Part{Name: "journal", Ready: true,
			Detail: fmt.Sprintf("durable %d, mode %s", k.Journal.Durable(), k.Options.Durability)})
	}
	if held := k.Held.Load(); held != nil {
		list = append(list, httpapi.Part{Name: "history", Detail: (*held).Error()})
	}
	list = append(list, killPart(k.Gate))
	list = append(list, numbersPart(k.Views.NextRef())...)
	list = append(append(list, in.diskParts()...), in.scrubbing.part())
	list = append(list, in.evidence.parts()...)
	if in.healing != nil {
		list = append(list, in.healing.part()...)
	}
	if in.Member != nil && !in.Member.Node.Leads() {
		return list
	}
	for _, s := range k.Gate.Snapshot().Sources {
		list = append(list, in.sourcePart(&s))
	}
	return list
}

// killPart is the kill switch. It works beside readiness: the process does what it was told to do,
// and another one would refuse orders too.
func killPart(g *gate.Gate) httpapi.Part {
	p := httpapi.Part{Name: "kill switch", Ready: true, Detail: "off", Beside: true}
	if g.Killed() {
		p.Ready, p.Detail = false, fmt.Sprintf("on: every order is refused; policy version %d",
			g.PolicyVersion())
	}
	return p
}

// diskParts are the states of the disks. When a disk has not synced anything for a second, no order
// is answered and no new state is shown. So this part decides readiness, for as long as that lasts.
//
// A member has two: its journal's, and its consensus log's, on which the agreement waits.
func (in *Installation) diskParts() []httpapi.Part {
	list := []httpapi.Part{diskPart("journal", in.Core.Journal.Dir(), in.Core.Journal.Disk())}
	if in.Member != nil {
		list = append(list, diskPart("consensus log", in.listeners.c.InDataDir("quorum"),
			in.Member.Node.Disk()))
	}
	return list
}

// diskPart is the state of one disk. Detail has the path only while something waits, which is when
// the operator needs it.
func diskPart(of, dir string, d journal.DiskState) httpapi.Part {
	p := httpapi.Part{Name: "disk of the " + of, Ready: !d.Slow()}
	if d.Waits > 0 {
		p.Detail = fmt.Sprintf("%s: the oldest that is not synced waits for %s; ", dir,
			d.Waits.Round(time.Millisecond))
	}
	p.Detail += fmt.Sprintf("the last sync took %s", d.Last.Round(time.Microsecond))
	return p
}

// sourcePart is a control source on /readyz. A source that cannot become ready says why.
//
// A ready source can have records without a place in the engine; its text says how many.
func (in *Installation) sourcePart(s *gate.Source) httpapi.Part {
	part := httpapi.Part{Name: "source " + s.Name, Ready: s.State == gate.Ready,
		Detail: s.State.String()}
	d := in.Beside.Load()
	if part.Ready {
		if d != nil {
			if unknown := d.sources.unknown(control.Source(s.Name)); unknown != "" {
				part.Detail += ", but " + unknown
			}
		}
		return part
	}
	if s.LastReason != "" {
		part.Detail += ", last quarantined for " + s.LastReason
	}
	if d != nil {
		if err := d.sources.why(control.Source(s.Name)); err != nil {
			part.Detail += ": " + err.Error()
		}
	}
	return part
}
