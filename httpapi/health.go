package httpapi

// health is the part of /health that all services share.
//
// The members of the document are in one order, the same in each service. All of it comes from
// memory: /health costs no look-up in a database.
type health struct {
	service, status, durability string
	cluster                     Cluster       // nil: this is the only member
	applied, durable            uint64        // input sequences
	projected                   func() uint64 // input sequence; nil: nothing is projected
}

// append renders the document. projected is null where nothing is projected.
func (h *health) append(b []byte) []byte {
	b = append(b, `{"service":`...)
	b = appendString(b, h.service)
	b = append(b, `,"status":`...)
	b = appendString(b, h.status)
	b = h.appendRole(b)
	b = append(b, `,"durability":`...)
	b = appendString(b, h.durability)
	b = append(b, `,"applied":`...)
	b = appendUint(b, h.applied)
	b = append(b, `,"durable":`...)
	b = appendUint(b, h.durable)
	b = append(b, `,"projected":`...)
	if h.projected == nil {
		return append(b, "null}"...)
	}
	return append(appendUint(b, h.projected()), '}')
}

// appendRole appends the role of this member. A new leader is a FOLLOWER until it has applied what
// was agreed before.
//
// On a single node member and leader are left out.
func (h *health) appendRole(b []byte) []byte {
	if h.cluster == nil {
		return append(b, `,"role":"SINGLE"`...)
	}
	role := "FOLLOWER"
	if h.cluster.Leads() {
		role = "LEADER"
	}
	leader, _ := h.cluster.Leader(h.service)
	b = append(b, `,"role":"`...)
	b = append(b, role...)
	b = append(b, `","member":`...)
	b = appendString(b, h.cluster.Member())
	b = append(b, `,"leader":`...)
	return appendOptional(b, []byte(leader))
}
