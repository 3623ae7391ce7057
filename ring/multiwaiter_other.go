//go:build !linux

package ring

// waitVector takes the place of futex_waitv: every sleep is a nap.
type waitVector struct{}

func (waitVector) wait([]*Waiter, int64) (woken int, late bool) {
	nap(napNs)
	return -1, false
}
