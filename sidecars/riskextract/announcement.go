package riskextract

import (
	"encoding/json"
	"strconv"
)

// Announcement is the content of risk.extract.ready.
//
// A receiver reads the two files by their URIs and compares the sums. The same marker gives the
// same announcement, in the same sink, so one that comes twice is recognised by its sequence.
type Announcement struct {
	// URI and ContractsURI are of scheme file, with the absolute path on the machine of the sink.
	URI               string // of the positions file
	SHA256            string
	ContractsURI      string
	ContractsSHA256   string
	ConsensusSequence uint64
	SessionDate       string // yyyy-MM-dd
	CutSHA256         string

	Schema          int // of the positions file
	Rows            int
	Contracts       int
	ContractsSchema int
	PriceVersion    uint32
}

// AppendJSON appends the announcement as a JSON object.
//
// The order of the members is fixed.
func (a *Announcement) AppendJSON(b []byte) []byte {
	b = appendText(append(b, `{"uri":`...), a.URI)
	b = appendText(append(b, `,"sha256":`...), a.SHA256)
	b = appendText(append(b, `,"contractsUri":`...), a.ContractsURI)
	b = appendText(append(b, `,"contractsSha256":`...), a.ContractsSHA256)
	b = strconv.AppendUint(append(b, `,"consensusSequence":`...), a.ConsensusSequence, 10)
	b = appendText(append(b, `,"sessionDate":`...), a.SessionDate)
	b = appendText(append(b, `,"cutSha256":`...), a.CutSHA256)
	b = strconv.AppendInt(append(b, `,"schema":`...), int64(a.Schema), 10)
	b = strconv.AppendInt(append(b, `,"rows":`...), int64(a.Rows), 10)
	b = strconv.AppendInt(append(b, `,"contracts":`...), int64(a.Contracts), 10)
	b = strconv.AppendInt(append(b, `,"contractsSchema":`...), int64(a.ContractsSchema), 10)
	b = strconv.AppendUint(append(b, `,"priceVersion":`...), uint64(a.PriceVersion), 10)
	return append(b, '}')
}

// note is the two files in the form of sha256sum(1): the same for a sink that was moved.
func (a *Announcement) note() []byte {
	return []byte(a.SHA256 + "  " + positionsFile(a.ConsensusSequence) + "\n" +
		a.ContractsSHA256 + "  " + contractsFile(a.ConsensusSequence) + "\n")
}

// appendText appends a JSON string. json.Marshal of a string never fails.
func appendText(b []byte, text string) []byte {
	quoted, _ := json.Marshal(text)
	return append(b, quoted...)
}
