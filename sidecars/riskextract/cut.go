package riskextract

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"posttrade/matcher"
	"posttrade/ring"
	"posttrade/sidecars/store"
)

// Versions of the written formats.
//
// A schema changes when a column, its meaning or the lines around it change, so that a consumer can
// refuse one that it does not know.
const (
	CutSchema       = 3
	PositionsSchema = 3
	ContractsSchema = 2
)

var (
	// ErrRefused reports a value that the extract cannot state exactly, or a missing input: the text
	// names it. A retry is useful only after the reference files were changed or marks were published.
	ErrRefused = errors.New("the extract stops")
	// ErrMismatch reports a stored file whose content differs from what it must be.
	ErrMismatch = errors.New("stored bytes and expected bytes differ")
)

// State is the state of an engine that stands exactly at a marker's sequence.
// *matcher.Engine fits.
//
// The functions walk in the engine's order until the callback returns false. Contracts come by
// ascending id; positions and securities in any order.
type State interface {
	EachPosition(func(matcher.PositionInfo) bool)
	EachSecurity(func(matcher.SecurityInfo) bool)
	EachContract(func(matcher.ContractInfo) bool)
}

// Marker is a sequenced RiskExtract record.
//
// Markers are commands, so every member has the same ones.
type Marker struct {
	Seq          uint64 // its inputSeq
	SessionDate  store.Date
	PriceVersion uint32
}

// Cut is a rendered cut.
//
// Bytes are ASCII with \n. They are the same on every member (renderCut).
type Cut struct {
	Bytes     []byte
	SHA256    string // lower-case hex: cutSha256
	Rows      int    // positions
	Contracts int
}

// The lines that are the same in every cut.
const (
	cutColumns = "accountId,security,quantity,avgCostTicks,contractMultiplier,lastTradePxTicks\n"
	cutSection = "#contracts\n"
	cutTerms   = "contractId,accountId,payFixed,notional,fixedRateTicks,conventionIndex," +
		"effectiveEpochDay,maturityEpochDay,productType,expiryEpochDay,exerciseStyle\n"
)

// engineMultiplier is the multiplier of every security in an engine: no command sets another. The
// multiplier of an instrument is reference data.
//
// A cut of another build may hold another one; appendPosition compares that with the reference
// data.
const engineMultiplier = 1

// lastDay is 9999-12-31, the last day that yyyy-MM-dd can express.
const lastDay store.Date = 2932896

// renderCut renders the state as the cut of a marker.
//
//   - Shape: a header line, then positions by (accountId, securityId), flat ones too, then
//     contracts ascending by id.
//   - Errors: ErrRefused for a security that is unknown or whose ticker a line cannot hold,
//     for a convention, style or side that this build does not know, and for a marker without
//     a sequence or a day of the years 1970 to 9999.
//   - Cost: two passes, a sort of the positions, one buffer. Never call it on the decision path.
func renderCut(m Marker, s State) (Cut, error) {
	breath := ring.NewBreather()
	return renderWith(m, s, &breath)
}

// renderWith is renderCut with pauses for other threads.
func renderWith(m Marker, s State, breath *ring.Breather) (Cut, error) {
	if err := m.check(); err != nil {
		return Cut{}, err
	}
	securities := securitiesOf(s, breath)
	positions := positionsOf(s, breath)
	contracts := 0
	s.EachContract(func(matcher.ContractInfo) bool { contracts++; return true })

	const headerBytes, positionBytes, contractBytes = 512, 64, 72 // approximate
	b := make([]byte, 0, headerBytes+positionBytes*len(positions)+contractBytes*contracts)
	b = m.appendHeader(b, len(positions), contracts)
	b = append(b, cutColumns...)
	for i, p := range positions {
		breath.Step(rowsPerBreath)
		if i > 0 && p.AccountID == positions[i-1].AccountID && p.SecurityID == positions[i-1].SecurityID {
			return Cut{}, refuse("accountId=%d securityId=%d has two positions", p.AccountID, p.SecurityID)
		}
		security, known := securities[p.SecurityID]
		if !known || !plainTicker(security.Ticker) {
			return Cut{}, refuse("accountId=%d securityId=%d: no ticker, or one that a line cannot hold: %q",
				p.AccountID, p.SecurityID, security.Ticker)
		}
		b = append(strconv.AppendUint(b, uint64(p.AccountID), 10), ',')
		b = append(append(b, security.Ticker...), ',')
		b = append(strconv.AppendInt(b, p.Qty, 10), ',')
		b = append(strconv.AppendInt(b, p.AverageCost, 10), ',')
		b = append(strconv.AppendUint(b, engineMultiplier, 10), ',')
		b = append(strconv.AppendInt(b, security.LastTradePx, 10), '\n')
	}
	b = append(append(b, cutSection...), cutTerms...)
	var err error
	last := uint64(0)
	s.EachContract(func(c matcher.ContractInfo) bool {
		breath.Step(rowsPerBreath)
		if err = checkContract(&c, last); err == nil {
			b, last = appendContract(b, &c), c.ID
		}
		return err == nil
	})
	if err != nil {
		return Cut{}, err
	}
	return Cut{Bytes: b, SHA256: summed(b, breath), Rows: len(positions), Contracts: contracts}, nil
}

// The service has a low priority: after every piece of about ten microseconds it lets other threads
// run.
const (
	rowsPerBreath     = 64 // rows that are rendered, read or looked at
	comparesPerBreath = 1024
	bytesPerBreath    = 16 << 10 // bytes that are hashed or written
)

// securitiesOf returns the securities by id.
//
// The map is only looked up, never walked: its order would differ from member to member.
func securitiesOf(s State, breath *ring.Breather) map[uint32]matcher.SecurityInfo {
	all := make(map[uint32]matcher.SecurityInfo)
	s.EachSecurity(func(i matcher.SecurityInfo) bool {
		breath.Step(rowsPerBreath)
		all[i.ID] = i
		return true
	})
	return all
}

// positionsOf returns the positions in the order of the cut.
//
// The first walk counts, so that the list is allocated once.
func positionsOf(s State, breath *ring.Breather) []matcher.PositionInfo {
	count := 0
	s.EachPosition(func(matcher.PositionInfo) bool { count++; return true })
	all := make([]matcher.PositionInfo, 0, count)
	s.EachPosition(func(p matcher.PositionInfo) bool {
		all = append(all, p)
		breath.Step(comparesPerBreath)
		return true
	})
	key := func(p matcher.PositionInfo) uint64 {
		return uint64(p.AccountID)<<32 | uint64(p.SecurityID)
	}
	slices.SortFunc(all, func(a, b matcher.PositionInfo) int {
		breath.Step(comparesPerBreath)
		return cmp.Compare(key(a), key(b))
	})
	return all
}

// check refuses a marker that cannot be part of a file name.
func (m Marker) check() error {
	if m.Seq == 0 || m.SessionDate < 0 || m.SessionDate > lastDay {
		return refuse("marker seq=%d sessionDateEpochDay=%d", m.Seq, m.SessionDate)
	}
	return nil
}

// appendHeader appends the first line of a cut. cutReader.header compares a text with it.
func (m Marker) appendHeader(b []byte, rows, contracts int) []byte {
	b = strconv.AppendUint(append(b, "#cut schema="...), CutSchema, 10)
	b = strconv.AppendUint(append(b, " seq="...), m.Seq, 10)
	b = strconv.AppendInt(append(b, " sessionDateEpochDay="...), int64(m.SessionDate), 10)
	b = strconv.AppendUint(append(b, " priceVersion="...), uint64(m.PriceVersion), 10)
	b = strconv.AppendInt(append(b, " rows="...), int64(rows), 10)
	b = strconv.AppendInt(append(b, " contracts="...), int64(contracts), 10)
	return append(b, '\n')
}

// plainTicker reports whether a ticker can be a CSV column.
func plainTicker(ticker string) bool {
	for i := range len(ticker) {
		if c := ticker[i]; c <= ' ' || c > '~' || c == ',' || c == '"' {
			return false
		}
	}
	return ticker != ""
}

// sumOf is the lower-case hex SHA-256 of b.
func sumOf(b []byte) string {
	breath := ring.NewBreather()
	return summed(b, &breath)
}

// summed is sumOf, in pieces with pauses.
func summed(b []byte, breath *ring.Breather) string {
	sum := sha256.New()
	for piece := range slices.Chunk(b, bytesPerBreath) {
		sum.Write(piece)
		breath.Breathe()
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// refuse returns an ErrRefused with its reason.
func refuse(format string, args ...any) error {
	return fmt.Errorf("riskextract: %s: %w", fmt.Sprintf(format, args...), ErrRefused)
}
