package outbox

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"posttrade/sidecars/control"
	"posttrade/sidecars/store"
)

// signatureBytes is how many bytes of the HMAC-SHA256 a message carries, as twice as many
// hexadecimal digits. 128 bits cannot be guessed; the rest of the digest would only cost room in
// each message.
const signatureBytes = 16

// signature returns the text that the source sends with a version's payload. A writer without the
// key cannot make it.
//
// The id of the version is under the signature: a signed payload cannot be sent again as another
// version. The separator keeps id and payload apart.
func signature(key []byte, s control.Source, version uint64, payload []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(s.MsgID(version)))
	mac.Write([]byte{'\n'})
	mac.Write(payload)
	return hex.EncodeToString(mac.Sum(nil)[:signatureBytes])
}

// otherID returns the second id of a version, for use when another writer has used the first:
// within its window of ids the stream takes no second message under the first. Another writer
// cannot know the second id before the source has used it.
func otherID(s control.Source, version uint64, signature string) string {
	return s.MsgID(version) + ":" + signature[:signatureBytes]
}

// signed reports whether a message of a version is signed with the key and has one of the version's
// ids.
//
// The comparison takes the same time wherever the texts differ.
func signed(key []byte, s control.Source, version uint64, m *Message) bool {
	if key == nil || len(m.Signature) != 2*signatureBytes {
		return false
	}
	want := signature(key, s, version, m.Data)
	return hmac.Equal([]byte(want), []byte(m.Signature)) &&
		(m.MsgID == s.MsgID(version) || m.MsgID == otherID(s, version, want))
}

// versionOf reads the version from a message id of the source; false for any other id.
//
// It accepts both forms, account:7 and account:7:<16 digits>, and does not check the digits: signed
// does.
func versionOf(s control.Source, m *Message) (uint64, bool) {
	text, ok := strings.CutPrefix(m.MsgID, string(s)+":")
	digits, other, _ := strings.Cut(text, ":")
	if !ok || other != "" && len(other) != signatureBytes {
		return 0, false
	}
	version, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || version == 0 || version > control.MaxVersion ||
		!strings.HasPrefix(m.MsgID, s.MsgID(version)) { // leading zeros
		return 0, false
	}
	return version, true
}

// signingKey returns the source's key, nil while it has none. Any goroutine.
//
// The key is read once and then kept. Until there is one, every call is a query.
func (b *Outbox) signingKey(ctx context.Context) (key []byte, err error) {
	if key := b.key.Load(); key != nil {
		return *key, nil
	}
	var text string
	err = b.o.DB.Read(ctx, func(tx *store.Tx) (err error) {
		text, err = tx.SourceKey(string(b.o.Source))
		return err
	})
	if err != nil || text == "" {
		return nil, err
	}
	return b.keep(text)
}

// drawKey makes sure that the source has a key. The key is drawn only after a publisher has found
// that stream and database agree: until then messages are recognised by their ids only.
//
// Two publishers that draw at once end with the same key (store.Tx.DrawKey).
func (b *Outbox) drawKey(ctx context.Context) error {
	if key, err := b.signingKey(ctx); err != nil || key != nil {
		return err
	}
	fresh := make([]byte, sha256.Size)
	if _, err := rand.Read(fresh); err != nil {
		return err
	}
	text := ""
	err := b.o.DB.Write(ctx, func(tx *store.Tx) (err error) {
		text, err = tx.DrawKey(string(b.o.Source), hex.EncodeToString(fresh))
		return err
	})
	if err == nil {
		_, err = b.keep(text)
	}
	return err
}

// keep parses a stored key. A row that was edited to hold none is an error on every use: nothing is
// published without a signature in its place.
func (b *Outbox) keep(text string) ([]byte, error) {
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != sha256.Size {
		return nil, fmt.Errorf("outbox: source=%s: source_keys holds no key of %d bytes",
			b.o.Source, sha256.Size)
	}
	b.key.Store(&key)
	return key, nil
}
