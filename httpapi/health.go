package httpapi

// health is what /health shows of any service.
type health struct {
	service, status, role, durability string
	applied, durable                  uint64        // input sequences
	projected                         func() uint64 // the same; nil: nothing is projected
}

func (h *health) append(b []byte) []byte {
	b = append(b, `{"service":`...)
	b = appendString(b, h.service)
	b = append(b, `,"status":`...)
	b = appendString(b, h.status)
	b = append(b, `,"role":`...)
	b = appendString(b, h.role)
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
