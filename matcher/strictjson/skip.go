//perf:hot

package strictjson

// Bool reads true or false, and returns false after an error; ErrType for another kind of value.
func (r *Reader) Bool() bool {
	switch c := r.value(); c {
	case 't':
		return r.word("true")
	case 'f':
		r.word("false")
	default:
		r.mismatch(c)
	}
	return false
}

// Null reads a null and returns true. Before any other value it reads nothing and returns false, so
// a caller asks it first where null is allowed.
func (r *Reader) Null() bool {
	return r.value() == 'n' && r.word("null")
}

// word reads a literal name. Letters right behind it are refused by the next call, which expects a
// separator.
func (r *Reader) word(w string) bool {
	if rest := r.buf[r.pos:]; len(rest) < len(w) || string(rest[:len(w)]) != w {
		r.fail(ErrSyntax)
		return false
	}
	r.pos += len(w)
	r.due = false
	return true
}

// Skip reads the value that is due, of any kind, as strictly as a value that is used. Only escaped
// control characters pass. It keeps no memory of the value, and its loop needs no stack of its own:
// MaxDepth bounds the nesting.
func (r *Reader) Skip() {
	mark, depth := len(r.scratch), r.depth
	for r.skipOne(); r.err == nil && r.depth > depth; {
		if r.objects>>r.depth&1 == 1 {
			if _, ok := r.NextKey(); ok {
				r.skipOne()
			}
		} else if r.NextItem() {
			r.skipOne()
		}
	}
	r.scratch = r.scratch[:mark]
}

// skipOne reads a scalar or enters a container.
func (r *Reader) skipOne() {
	switch c := r.value(); kindOf(c) {
	case KindObject:
		r.BeginObject()
	case KindArray:
		r.BeginArray()
	case KindString:
		r.text()
		r.due = false
	case KindNumber:
		r.number()
		r.due = false
	case KindBool:
		r.Bool()
	case KindNull:
		r.Null()
	default:
		r.fail(ErrSyntax)
	}
}
