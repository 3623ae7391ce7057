package matcher

import (
	"errors"
	"fmt"
	"unsafe"
)

// The reasons why 64 bytes are no command. Decode and Verify wrap exactly one of them, so a caller
// can test the reason with errors.Is. None of them is a business refusal: a record of wrong form
// gets no sequence and no event.
var (
	ErrLength = errors.New("record is not 64 bytes long")
	ErrSchema = errors.New("schema is not 111")
	// A newer version is refused and not guessed: its rules may decide the record differently.
	ErrVersion     = errors.New("schema version is not 1 to 3")
	ErrTemplate    = errors.New("unknown template")
	ErrBlockLength = errors.New("block length is not the template's")
	ErrCommandType = errors.New("unknown command type")
	ErrSide        = errors.New("side is out of range")
	ErrFlags       = errors.New("unknown flag bits")
	// Also the unused fields of a TOKEN_REVOKE.
	ErrPadding = errors.New("padding is not zero")
	ErrNote    = errors.New("not a part of an operator's note")
	ErrTicker  = errors.New("ticker is not 1 to 32 printable ASCII characters")
)

// Decode reads one record strictly: every byte must have a meaning. It judges only the form of the
// record; the engine judges what the record asks for. It copies b, which the caller may use again.
func Decode(b []byte) (Command, error) {
	if len(b) != CommandBytes {
		return Command{}, fmt.Errorf("matcher: decode bytes=%d: %w", len(b), ErrLength)
	}
	var c Command
	copy(c.Bytes()[:], b)
	if err := c.Verify(); err != nil {
		return Command{}, err
	}
	return c, nil
}

// Verify returns what is wrong with the record's form, nil if the form is right. A form depends on
// the version too: types, and bits of Side, that a version does not know are refused in its
// records.
//
// It reads only the record and allocates only for an error. Any goroutine may call it.
func (c *Command) Verify() error {
	switch {
	case c.SchemaID != SchemaID:
		return fmt.Errorf("matcher: decode schema=%d: %w", c.SchemaID, ErrSchema)
	case c.Version < OldestVersion || c.Version > SchemaVersion:
		return fmt.Errorf("matcher: decode version=%d: %w", c.Version, ErrVersion)
	}
	switch c.TemplateID {
	case TemplateCommand:
		return c.verifyCommand()
	case TemplateSymbolRegister:
		if c.BlockLength != blockSymbolRegister {
			return c.badBlockLength()
		}
		return c.verifySymbol()
	case TemplateRiskExtract:
		if c.BlockLength != blockRiskExtract {
			return c.badBlockLength()
		}
		return c.verifyExtract()
	}
	return fmt.Errorf("matcher: decode template=%d: %w", c.TemplateID, ErrTemplate)
}

// verifyCommand is the form of a template 1 record. Fields that a type does not use may hold
// anything, except in an OPERATOR_NOTE and a TOKEN_REVOKE.
func (c *Command) verifyCommand() error {
	if c.BlockLength != blockCommand {
		return c.badBlockLength()
	}
	if !c.Type.known(c.Version) {
		return fmt.Errorf("matcher: decode type=%d: %w", c.Type, ErrCommandType)
	}
	if c.Side&^c.sides() != 0 {
		return fmt.Errorf("matcher: decode type=%d side=%d: %w", c.Type, c.Side, ErrSide)
	}
	if c.Flags&^flagsKnown != 0 {
		return fmt.Errorf("matcher: decode flags=%#x: %w", c.Flags, ErrFlags)
	}
	switch c.Type {
	case OperatorNote:
		return c.verifyNote()
	case TokenRevoke:
		return c.verifyRevoke()
	}
	return nil
}

// known reports whether records of a version can have the type.
func (t CommandType) known(version uint16) bool {
	switch t {
	case CapacityControl, OperatorNote, LimitsControl, TokenRevoke:
		return version >= 2
	}
	return t >= OrderNew && t < CapacityControl
}

// sides are the bits that Side may have.
func (c *Command) sides() (bits Side) {
	switch c.Type {
	case AccountControl:
		bits = SecurityEnabled | KeepEnabled
	case SecurityControl:
		bits = SecurityEnabled | SecurityHalted | KeepEnabled | KeepHalted
	default:
		return Sell
	}
	if c.Version < 2 {
		bits &^= KeepEnabled | KeepHalted
	}
	return bits
}

// verifySymbol is the form of a template 7 record: the block ends behind the ticker, at byte 48.
func (c *Command) verifySymbol() error {
	if _, err := c.Symbol(); err != nil {
		return err
	}
	return c.verifyTail(16 + TickerBytes)
}

// verifyExtract is the form of a template 8 record: the block ends at byte 32.
func (c *Command) verifyExtract() error {
	if c.extractWords().reserved != 0 {
		return fmt.Errorf("matcher: decode reserved=%d: %w", c.extractWords().reserved, ErrPadding)
	}
	return c.verifyTail(8 + blockRiskExtract)
}

// verifyTail requires zeros from byte offset on. Two records that mean the same have the same
// bytes, so their hashes agree.
func (c *Command) verifyTail(offset int) error {
	for i, b := range c.Bytes()[offset:] {
		if b != 0 {
			return fmt.Errorf("matcher: decode offset=%d: %w", offset+i, ErrPadding)
		}
	}
	return nil
}

// badBlockLength names the template whose block length the record does not have. The length is
// fixed: a longer block would hold fields that this build does not know.
func (c *Command) badBlockLength() error {
	return fmt.Errorf("matcher: decode template=%d length=%d: %w", c.TemplateID, c.BlockLength,
		ErrBlockLength)
}

// Symbol is the ticker that a template 7 record registers. The error is ErrTemplate for any other
// record, and ErrTicker for a ticker that is empty, not printable or not padded with zeros.
func (c *Command) Symbol() (string, error) {
	if c.TemplateID != TemplateSymbolRegister {
		return "", fmt.Errorf("matcher: symbol template=%d: %w", c.TemplateID, ErrTemplate)
	}
	b := c.symbolBytes()
	n := tickerLen(b)
	if n == 0 {
		bad := *b // the record itself must not escape
		return "", fmt.Errorf("matcher: symbol %q: %w", bad[:], ErrTicker)
	}
	return string(b[:n]), nil
}

// tickerLen is the length of a zero-padded ticker, 0 if it is not one: empty, with a space or
// another character that is not printable ASCII, or with a byte behind the padding.
func tickerLen(b *[TickerBytes]byte) int {
	n := 0
	for n < len(b) && b[n] > ' ' && b[n] <= '~' {
		n++
	}
	for _, pad := range b[n:] {
		if pad != 0 {
			return 0
		}
	}
	return n
}

// extract is the block of a template 8 record behind its request id.
//
// It lies from byte 16 on, where a template 1 record has its event time, so a template 8 record has
// no event time.
type extract struct {
	// Days since 1970-01-01. The session whose cut the marker starts.
	sessionDateEpochDay int64
	priceVersion        uint32
	// Zero; verifyExtract refuses another value.
	reserved uint32
}

// extractWords is the block in the record's own memory: a change of one is a change of the other.
func (c *Command) extractWords() *extract {
	return (*extract)(unsafe.Pointer(&c.EventTimeMillis))
}

// NewRiskExtract returns a template 8 record, which marks where the engine takes the cut of a
// session date. The engine changes nothing when it decides the record: only the sequence matters.
func NewRiskExtract(sessionDateEpochDay int64, priceVersion uint32) Command {
	c := Command{
		BlockLength: blockRiskExtract, TemplateID: TemplateRiskExtract,
		SchemaID: SchemaID, Version: SchemaVersion,
	}
	*c.extractWords() = extract{sessionDateEpochDay: sessionDateEpochDay, priceVersion: priceVersion}
	return c
}

// Extract reads a template 8 record; the error is ErrTemplate for any other.
func (c *Command) Extract() (sessionDateEpochDay int64, priceVersion uint32, err error) {
	if c.TemplateID != TemplateRiskExtract {
		return 0, 0, fmt.Errorf("matcher: extract template=%d: %w", c.TemplateID, ErrTemplate)
	}
	x := c.extractWords()
	return x.sessionDateEpochDay, x.priceVersion, nil
}
