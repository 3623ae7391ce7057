package riskextract

import (
	"bytes"
	"io"
	"strconv"
	"testing"

	"posttrade/matcher"
	"posttrade/ring"
	"posttrade/ring/ringtest"
)

// TestAPoliteExtractBreathes: in every stage of an extract other threads may run, every few rows.
func TestAPoliteExtractBreathes(t *testing.T) {
	const rows = 4000
	state := new(fakeState)
	for i := range uint32(rows) {
		state.securities = append(state.securities,
			matcher.SecurityInfo{ID: i + 1, Ticker: "S" + strconv.Itoa(int(i)), LastTradePx: 1})
		state.positions = append(state.positions,
			matcher.PositionInfo{AccountID: 2, SecurityID: rows - i, Qty: 1})
		state.contracts = append(state.contracts, matcher.ContractInfo{ID: uint64(i + 1),
			ContractTerms: matcher.ContractTerms{AccountID: 2, Notional: 1, FixedRate: 1, Maturity: 1}})
	}
	in := unmarked(t, "")
	points := map[string]int{}
	ringtest.Politely(t, func() {
		order := ring.NewBreather()
		positionsOf(state, &order)
		points["taking and sorting the positions"] = order.Points()
		breath := ring.NewBreather()
		cut, err := renderWith(Marker{Seq: 1, SessionDate: 1}, state, &breath)
		points["a cut"] = breath.Points() - order.Points()
		hash := ring.NewBreather()
		summed(cut.Bytes, &hash)
		points["hashing"] = hash.Points()
		file := ring.NewBreather()
		if err := writePieces(io.Discard, cut.Bytes, &file); err != nil {
			t.Error(err)
		}
		points["writing"] = file.Points()
		reader := newCutReader(string(cut.Bytes))
		read, readErr := reader.rows()
		points["reading a cut"] = reader.breath.Points()
		if err != nil || readErr != nil {
			t.Error(err, readErr)
			return
		}
		if _, err := render(read, cut.SHA256, in, ""); err != nil {
			t.Error(err)
		}
		points["the files"] = in.breath.Points()
	})
	for stage, least := range map[string]int{
		"taking and sorting the positions": 2 * rows / comparesPerBreath,
		"a cut":                            3 * rows / rowsPerBreath, "hashing": 4, "writing": 4,
		"reading a cut": 2 * rows / rowsPerBreath, "the files": 2 * rows / rowsPerBreath,
	} {
		if points[stage] < least {
			t.Errorf("%s: %d points, want %d or more", stage, points[stage], least)
		}
	}
}

// pieces accepts writes, and fails after a number of them.
type pieces struct {
	bytes.Buffer
	most, left int
}

func (p *pieces) Write(b []byte) (int, error) {
	if p.left--; p.left < 0 {
		return 0, io.ErrShortWrite
	}
	p.most = max(p.most, len(b))
	return p.Buffer.Write(b)
}

func TestAFileIsWrittenInPieces(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 5*bytesPerBreath/32) // two and a half pieces
	w := &pieces{left: 3}
	if err := writePieces(w, content, new(ring.Breather)); err != nil ||
		!bytes.Equal(w.Bytes(), content) || w.most != bytesPerBreath {
		t.Errorf("%d bytes of %d, at most %d at once, %v", w.Len(), len(content), w.most, err)
	}
	if err := writePieces(&pieces{left: 2}, content, new(ring.Breather)); err != io.ErrShortWrite {
		t.Errorf("a disk that fails: %v", err)
	}
}
