package bootstrap

// Reason says why a source was quarantined. Metrics carry it.
//
// The texts are a contract: they are label values of svc_replica_quarantine_total, and operators
// see them in the state of the gate.
type Reason string

// The reasons.
const (
	Gap               Reason = "gap"
	VersionRegression Reason = "version_regression"
	EpochChange       Reason = "epoch_change"
	ChecksumFailure   Reason = "checksum_failure"
	CountMismatch     Reason = "count_mismatch"
	BufferOverflow    Reason = "buffer_overflow"
	Malformed         Reason = "malformed"
	Disconnected      Reason = "disconnected"
)

// Reasons returns all reasons.
//
// Collect states a counter for each, so that a reason that has never occurred shows as 0.
func Reasons() []Reason {
	return []Reason{Gap, VersionRegression, EpochChange, ChecksumFailure, CountMismatch,
		BufferOverflow, Malformed, Disconnected}
}

// fault is an error that quarantines a source.
//
// detail is for operators. counted says that quarantine has seen it; mu of the Bootstrap guards
// that.
type fault struct {
	reason  Reason
	detail  string
	counted bool
}

func (f *fault) Error() string { return string(f.reason) + ": " + f.detail }

// quarantine revokes readiness. Only the first call with a given fault has an effect.
//
// The reader calls it for the faults that it finds, and Run's goroutine again at the end of the
// round.
func (b *Bootstrap) quarantine(f *fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f.counted {
		return
	}
	f.counted = true
	b.status.State, b.status.LastReason, b.status.Detail = Quarantined, f.reason, f.detail
	b.status.Quarantines[f.reason]++
	b.show()
	b.o.Logger.Warn("control feed quarantined", "source", string(b.o.Source), "reason",
		string(f.reason), "detail", f.detail)
}
