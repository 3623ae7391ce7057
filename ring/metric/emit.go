package metric

// Emit takes one metric. labels are pairs of name and value. Metrics of one name always have the
// same help, type and label names. Values of labels are classifications, never an id.
type Emit func(name, help string, counter bool, value float64, labels ...string)

// Counter states what only grows.
func (e Emit) Counter(name, help string, n uint64, labels ...string) {
	e(name, help, true, float64(n), labels...)
}

// Gauge states what goes up and down.
func (e Emit) Gauge(name, help string, value float64, labels ...string) {
	e(name, help, false, value, labels...)
}

// Flag is 1 for yes.
func (e Emit) Flag(name, help string, yes bool, labels ...string) {
	value := 0.0
	if yes {
		value = 1
	}
	e(name, help, false, value, labels...)
}
