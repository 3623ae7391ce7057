package admission

// String is the verdict in words, for errors.
func (v Verdict) String() string {
	return [...]string{"admitted", "repeated", "known with other terms", "its order has ended",
		"journal failed", "journal full", "history ahead of the journal", "not ready", "refused"}[v]
}

// Closed reports a verdict that is not about the request: the same request may be admitted later.
// The constants from Failed to NotReady are such verdicts.
func (v Verdict) Closed() bool { return v >= Failed && v <= NotReady }
