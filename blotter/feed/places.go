package feed

// places are what readers take of a bounded number. Guests leave half of it to the others.
type places struct{ most, taken, guests int }

// take takes a place, and reports whether there was one. give gives it back.
func (p *places) take(guest bool) bool {
	switch {
	case p.taken >= p.most, guest && p.guests >= (p.most+1)/2:
		return false
	case guest:
		p.guests++
	}
	p.taken++
	return true
}

func (p *places) give(guest bool) {
	if guest {
		p.guests--
	}
	p.taken--
}
