package matcher

// Genesis is everything outside the commands that a decision depends on. It is written once, when a
// journal is created, so that nothing outside the journal can alter a replay. Its SHA-256 is the
// seed of every report.
//
// The field names are stored. A field that is added later has omitempty, so that the text of an
// older journal, and its hash, stay the same. Settings that name the same limits count only for a
// new journal; afterwards commands change them.
type Genesis struct {
	Format     int               `json:"format"` // GenesisFormat
	Accounts   []GenesisAccount  `json:"accounts"`
	Securities []GenesisSecurity `json:"securities"` // ids are positions: the first is security 1
	Limits     Limits            `json:"limits"`
	TickPx     int64             `json:"tickPx"` // default tick x 1e6: 1000 is 0.001

	// ClientKey is the secret under which client order ids are hashed, 16 bytes in hex. A journal from
	// a build without this field has none. No caller may see it: see PublicGenesis.
	ClientKey string `json:"clientKey,omitempty"`

	// EvidenceKey is the secret from which the transparency log makes its salts, 32 bytes in hex. A
	// journal from a build without this field has none. No caller may see it either.
	EvidenceKey string `json:"evidenceKey,omitempty"`
}

// GenesisFormat is the version of the genesis record.
const GenesisFormat = 1

// GenesisAccount is an account of the initial universe. Its place in the list is its index in every
// engine of this journal.
type GenesisAccount struct {
	ID      uint32 `json:"id"`
	Enabled bool   `json:"enabled"`
}

// GenesisSecurity is a security of the initial universe. It is known to trading from the beginning.
type GenesisSecurity struct {
	Ticker  string `json:"ticker"`
	Enabled bool   `json:"enabled"`
	Halted  bool   `json:"halted"`
}

// Limits bound what the engine admits and how much it remembers. Money is x 1e6. All but the collar
// and RetainedOrders are at least 1 (Genesis.verify has the ranges). LIMITS_CONTROL and
// POLICY_CONTROL change the first seven, CAPACITY_CONTROL raises the rest; this record keeps the
// first values.
type Limits struct {
	// Risk limits of all accounts: see LimitID for what each bounds.
	MaxOrderQty              int64 `json:"maxOrderQty"`
	MaxOrderNotional         int64 `json:"maxOrderNotional"`
	MaxPositionQty           int64 `json:"maxPositionQty"`
	MaxConcentrationNotional int64 `json:"maxConcentrationNotional"`
	CreditLimit              int64 `json:"creditLimit"`
	PriceMaxAgeMillis        int64 `json:"priceMaxAgeMillis"`
	PriceCollarBps           int64 `json:"priceCollarBps"` // 0 = no collar
	// Capacities: keys remembered, then rows of the tables. A full table refuses with CAPACITY, except
	// for keys, of which the oldest is forgotten.
	IdempotencyCapacity int `json:"idempotencyCapacity"`
	MaxAccounts         int `json:"maxAccounts"`
	MaxSecurities       int `json:"maxSecurities"`
	MaxContracts        int `json:"maxContracts"`
	MaxOpenOrders       int `json:"maxOpenOrders"`
	// terminal orders kept, oldest dropped first
	RetainedOrders int `json:"retainedOrders"`
}
