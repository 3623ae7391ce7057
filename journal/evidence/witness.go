package evidence

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"posttrade/journal/evidence/verify"
)

// Witness is a party outside that cosigns heads (C2SP tlog-witness): it does so only for a head
// that continues the last one it has cosigned, so it never cosigns two histories.
//
// A Witness belongs to one Log, whose goroutine of the witnesses asks it about one head at a time.
type Witness struct {
	// Verifier is its public key: what it sends is checked with it
	note.Verifier
	// URL is the prefix of its add-checkpoint, without a slash at the end.
	URL string

	// size is how many leaves it has cosigned, as it was last seen; 0: it has not been asked, or knows
	// nothing of the log. Writer: cosign, which runs once at a time for each witness.
	size uint64
}

// ReadWitnesses reads a file of lines "<vkey> <url>". Empty lines and those that begin with # are
// passed over. An error names the line. A file without witnesses gives none, without an error; one
// witness on two lines is an error, because its cosignature would count twice for the quorum.
func ReadWitnesses(name string) (list []*Witness, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(string(text), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 2 || !strings.HasPrefix(fields[1], "http://") &&
			!strings.HasPrefix(fields[1], "https://") {
			return nil, fmt.Errorf("%s line %d: not <vkey> <url>", name, i+1)
		}
		v, err := verify.NewCosigner(fields[0])
		if err != nil {
			return nil, fmt.Errorf("%s line %d: %w", name, i+1, err)
		}
		if slices.ContainsFunc(list, func(w *Witness) bool {
			return w.Name() == v.Name() && w.KeyHash() == v.KeyHash()
		}) {
			return nil, fmt.Errorf("%s line %d: the witness %q is there already", name, i+1, v.Name())
		}
		list = append(list, &Witness{Verifier: v, URL: strings.TrimSuffix(fields[1], "/")})
	}
	return list, nil
}

// What a witness may answer. errFork is what witnesses are for: one of the two histories is not the
// true one.
var (
	errFork  = errors.New("refuses the head: it knows another history of this log")
	errAhead = errors.New("has cosigned a longer log than this one")
)

// The bounds of a request to a witness: its time, the bytes of its answer that are read, and how
// often a head is sent again because the witness has another size than it was last seen at.
const (
	witnessTimeout = 10 * time.Second
	maxWitnessBody = 64 << 10
	witnessTries   = 3
)

// cosign asks a witness for its signature of a head, and returns the line of it. read reads a tile
// of the log, for the proof of consistency.
//
// 200 is a signature, 409 says the size that the witness knows, 422 refuses the proof (C2SP
// tlog-witness). A 409 with the size that was sent means that the witness has another root for it.
func (w *Witness) cosign(ctx context.Context, client *http.Client, text []byte,
	head *verify.Checkpoint, read verify.Read) ([]byte, error) {
	body, _, _ := bytes.Cut(text, []byte("\n\n"))
	for range witnessTries {
		if known := w.size; known > head.Size {
			w.size = 0 // with the next head it is asked again: it may have been wrong
			return nil, fmt.Errorf("witness %s: %w: %d leaves, this one has %d", w.Name(), errAhead, known,
				head.Size)
		}
		proof, err := consistency(head, w.size, read)
		if err != nil {
			return nil, err
		}
		status, answer, err := w.post(ctx, client, request(w.size, proof, text))
		switch {
		case err != nil:
			return nil, fmt.Errorf("witness %s: %w", w.Name(), err)
		case status == http.StatusOK:
			line, err := w.signature(answer, append(bytes.Clone(body), '\n'))
			if err == nil {
				w.size = head.Size
			}
			return line, err
		case status == http.StatusConflict:
			size, err := strconv.ParseUint(strings.TrimSpace(string(answer)), 10, 63)
			if err != nil || size == w.size {
				return nil, fmt.Errorf("witness %s: %w", w.Name(), errFork)
			}
			w.size = size
		case status == http.StatusUnprocessableEntity:
			return nil, fmt.Errorf("witness %s: %w", w.Name(), errFork)
		default:
			return nil, fmt.Errorf("witness %s: status %d: %.100q", w.Name(), status, answer)
		}
	}
	return nil, fmt.Errorf("witness %s: its size changes all the time", w.Name())
}

// consistency proves that the first leaves of a head are the log of a smaller size.
//
// It is empty when the witness knows nothing yet, or this very size.
func consistency(head *verify.Checkpoint, size uint64, read verify.Read) (tlog.TreeProof, error) {
	if size == 0 || size == head.Size {
		return nil, nil
	}
	proof, err := tlog.ProveTree(int64(head.Size), int64(size), verify.NewTiles(head, read))
	if err != nil {
		return nil, fmt.Errorf("evidence: proof of %d leaves: %w", size, err)
	}
	return proof, nil
}

// request is the body of add-checkpoint: the old size, a line of base64 for each hash, an empty
// line, the signed head.
//
// For a witness that knows 17 leaves:
//
//	old 17
//	<hash, base64>
//	<hash, base64>
//
//	<note>
func request(size uint64, proof tlog.TreeProof, text []byte) []byte {
	b := fmt.Appendf(nil, "old %d\n", size)
	for i := range proof {
		b = append(base64.StdEncoding.AppendEncode(b, proof[i][:]), '\n')
	}
	return append(append(b, '\n'), text...)
}

// post sends a request and returns status and answer, for at most witnessTimeout.
func (w *Witness) post(ctx context.Context, client *http.Client, body []byte) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, witnessTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL+"/add-checkpoint",
		bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxWitnessBody))
	return answer.StatusCode, text, err
}

// signature finds the witness's own line in its answer, and checks it.
//
// An answer without a valid line of this witness is an error, whatever else it holds: only checked
// lines are published. The base64 is written anew: package note reads several texts of one
// signature, and a verifier accepts one of them.
func (w *Witness) signature(answer, text []byte) ([]byte, error) {
	signed := append(append(append([]byte(nil), text...), '\n'), answer...)
	n, err := note.Open(signed, note.VerifierList(w.Verifier))
	if err != nil {
		return nil, fmt.Errorf("witness %s: its signature is not right: %w", w.Name(), err)
	}
	sig, err := base64.StdEncoding.DecodeString(n.Sigs[0].Base64)
	if err != nil {
		return nil, fmt.Errorf("witness %s: its signature is not right: %w", w.Name(), err)
	}
	return fmt.Appendf(nil, "— %s %s\n", n.Sigs[0].Name,
		base64.StdEncoding.EncodeToString(sig)), nil
}
