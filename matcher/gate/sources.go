package gate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// SourceState is how far a control source has come.
type SourceState uint8

// The states. Only Ready admits orders.
const (
	// No snapshot of the source is installed yet.
	Bootstrapping SourceState = iota
	// A snapshot is in the engine; changes behind it are missing.
	Installed
	// The engine has what the source has committed.
	Ready
	// A fault has taken the source out, and LastReason names it. It is bootstrapped anew.
	Quarantined
)

var stateNames = [...]string{"bootstrapping", "installed", "ready", "quarantined"}

// String returns the name that JSON answers and metrics carry.
func (s SourceState) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// MarshalText is String, for JSON.
func (s SourceState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// The names of the sources.
const (
	AccountSource  = "account"
	SecuritySource = "security"

	sourceCount = 2
)

var sourceNames = [sourceCount]string{AccountSource, SecuritySource}

// Source is the state of one control source, as package sidecars/bootstrap reports it. Epoch,
// Watermark and HighWatermark are the source's: the life of its database, the last version that the
// engine has, and the last one known to exist. The gate only shows them; State alone admits.
type Source struct {
	Name          string      `json:"source"`
	State         SourceState `json:"state"`
	Epoch         uint64      `json:"epoch"`
	Watermark     uint64      `json:"watermark"`
	HighWatermark uint64      `json:"highWatermark"`
	LastReason    string      `json:"lastReason"` // of the last quarantine, "" for none
}

// SetSource records the state of a source. When the last source becomes Ready, so does the gate;
// when one leaves Ready, the gate does so before SetSource returns. An empty reason does not change
// the last one. ErrSource for an unknown name.
func (g *Gate) SetSource(name string, state SourceState, epoch, watermark, high uint64,
	reason string) error {
	i := slices.Index(sourceNames[:], name)
	if i < 0 || state > Quarantined {
		return fmt.Errorf("gate: set source name=%q state=%d: %w", name, state, ErrSource)
	}
	w := g.writers
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.sources[i]
	s.State, s.Epoch, s.Watermark, s.HighWatermark = state, epoch, watermark, high
	if reason != "" {
		s.LastReason = reason
	}
	g.judgeReady()
	return nil
}

// SetReady makes every source ready at once, for an image that comes from seeds and the journal
// alone. The numbers of the sources stay.
func (g *Gate) SetReady() {
	w := g.writers
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.sources {
		w.sources[i].State = Ready
	}
	g.judgeReady()
}

// judgeReady publishes whether all sources are ready. The caller holds writers.mu.
func (g *Gate) judgeReady() {
	ready := uint32(1)
	for i := range g.writers.sources {
		if g.writers.sources[i].State != Ready {
			ready = 0
		}
	}
	g.policy.ready.Store(ready)
}

// Snapshot is the whole image at one moment, in the shape of the JSON answer. Prices are not in it.
type Snapshot struct {
	Ready         bool              `json:"ready"`
	KillSwitch    bool              `json:"killSwitch"`
	PolicyVersion int64             `json:"policyVersion"`
	Limits        LimitValues       `json:"limits"` // of all accounts
	Sources       []Source          `json:"sources"`
	Accounts      []AccountControl  `json:"accounts"`   // by id
	Securities    []SecurityControl `json:"securities"` // by ticker
}

// AccountControl is an account's row of a Snapshot. Version is that of the last control of the
// account.
type AccountControl struct {
	ID      uint32 `json:"id"`
	Enabled bool   `json:"enabled"`
	Version int64  `json:"version"`
	HeldBy  Holder `json:"heldBy"`
	// Limits are those that the account has of its own; nil when it has none.
	Limits *LimitValues `json:"limits,omitempty"`
}

// SecurityControl is a security's row of a Snapshot. Version is that of the last control or
// restriction of the security. The id is not for clients: they name a security by its ticker.
type SecurityControl struct {
	ID         uint32 `json:"-"`
	Ticker     string `json:"ticker"`
	Enabled    bool   `json:"enabled"`
	Halted     bool   `json:"halted"`
	Restricted bool   `json:"restricted"`
	Version    int64  `json:"version"`
	// HeldBy says what has set Enabled or Halted; Restricted is always an operator's.
	HeldBy Holder `json:"heldBy"`
}

// Holder says what has set the flags of an account or a security. A flag that an operator has set
// stays until an operator sets another one, or a change of the source sets the flag.
type Holder bool

// The holders.
const (
	HeldBySource   Holder = false
	HeldByOperator Holder = true
)

// MarshalText names the holder, for JSON.
func (h Holder) MarshalText() ([]byte, error) {
	if h == HeldByOperator {
		return []byte("operator"), nil
	}
	return []byte("source"), nil
}

// PolicyVersion is the version of the policy in force, 0 before the first. Any goroutine.
func (g *Gate) PolicyVersion() int64 { return g.policy.version.Load() }

// Killed reports that the kill switch is on: every order is refused.
func (g *Gate) Killed() bool { return g.policy.kill.Load() != 0 }

// Snapshot copies the image while no writer changes it. Prices are not in it, and their writers
// continue. It is not on the path of a command. It allocates; it sorts after it has released the
// lock, so a writer waits only for the copy.
func (g *Gate) Snapshot() Snapshot {
	out, own := g.copyImage()
	slices.SortFunc(out.Accounts, func(a, b AccountControl) int { return cmp.Compare(a.ID, b.ID) })
	addOwn(out.Accounts, own)
	slices.SortFunc(out.Securities, func(a, b SecurityControl) int {
		return cmp.Compare(a.Ticker, b.Ticker)
	})
	return out
}

// copyImage copies the image, unsorted, and holds writers.mu meanwhile.
func (g *Gate) copyImage() (Snapshot, map[uint32]ownRow) {
	w := g.writers
	w.mu.Lock()
	defer w.mu.Unlock()
	out := Snapshot{
		Ready:         g.Ready(),
		KillSwitch:    g.policy.kill.Load() != 0,
		PolicyVersion: g.policy.version.Load(),
		Limits:        g.limitsInForce(),
		Sources:       slices.Clone(w.sources[:]),
		Accounts:      make([]AccountControl, 0, w.accounts),
		Securities:    []SecurityControl{},
	}
	t := g.tables.Load()
	for i := range t.accounts {
		if word := t.accounts[i].word.Load(); word != 0 {
			out.Accounts = append(out.Accounts, AccountControl{
				ID: uint32(word), Enabled: word&accountEnabled != 0, Version: t.accounts[i].version.Load(),
				HeldBy: word&accountByHand != 0,
			})
		}
	}
	for id := range t.securities {
		s := &t.securities[id]
		if flags := s.flags.Load(); flags&securityRegistered != 0 {
			out.Securities = append(out.Securities, SecurityControl{
				ID: uint32(id), Ticker: t.names[id], Version: s.version.Load(),
				Enabled:    flags&securityEnabled != 0,
				Halted:     flags&securityHalted != 0,
				Restricted: flags&securityRestricted != 0,
				HeldBy:     s.byHand.Load() != 0,
			})
		}
	}
	return out, maps.Clone(w.own)
}
