package strictjson

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestStringsAreEscaped(t *testing.T) {
	for text, want := range map[string]string{
		"":                     `""`,
		"plain":                `"plain"`,
		`a"b\c`:                `"a\"b\\c"`,
		"\b\t\n\f\r":           `"\b\t\n\f\r"`,
		"\x00\x0b\x1f":         `"\u0000\u000b\u001f"`,
		"\x7f":                 "\"\x7f\"",
		"é€😀":                  `"é€😀"`,
		"\xff":                 `"\ufffd"`,
		"a\xffb":               `"a\ufffdb"`,
		"<&>":                  `"<&>"`,
		"\u2028":               "\"\u2028\"",
		"plain, then \xe2\x82": `"plain, then \ufffd\ufffd"`,
	} {
		want = strings.ReplaceAll(want, `\ufffd`, "\ufffd")
		if got := string(AppendString([]byte("x"), text)); got != "x"+want {
			t.Errorf("%q is %s, want %s", text, got[1:], want)
		}
		if got := string(AppendString(nil, []byte(text))); got != want {
			t.Errorf("the bytes of %q are %s, want %s", text, got, want)
		}
	}
}

// FuzzAppendString compares with what the standard library reads.
func FuzzAppendString(f *testing.F) {
	f.Add("a\"\\\x00\xffé\u2028")
	f.Fuzz(func(t *testing.T, text string) {
		var back string
		if err := json.Unmarshal(AppendString(nil, text), &back); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		var r Reader
		r.Reset(AppendString(nil, text))
		r.Skip()
		if err := r.End(); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		want := make([]rune, 0, len(text))
		for _, ch := range text {
			want = append(want, ch) // a byte that is no UTF-8 is U+FFFD
		}
		if back != string(want) {
			t.Fatalf("%q comes back as %q", text, back)
		}
	})
}
