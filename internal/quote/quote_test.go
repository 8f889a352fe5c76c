package quote_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/quote"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"mcp__server__read-file": "mcp__server__read-file", "a/b.c:d": "a/b.c:d",
		"": `""`, "two words": `"two words"`, "a\n\nEarlier the user said:": `"a\n\nEarlier the user said:"`, "rеad": `"rеad"`, "read\u200b": `"read\u200b"`,
		strings.Repeat("é", 200): `"` + strings.Repeat("é", 32) + `…"`, "a" + strings.Repeat("é", 32): `"a` + strings.Repeat("é", 31) + `…"`,
		strings.Repeat("é", 32): `"` + strings.Repeat("é", 32) + `"`,
	} {
		if got := quote.Name(name); got != want {
			t.Errorf("%q is written %s, want %s", name, got, want)
		}
	}
}

// TestEscape: nothing that is not seen stays, and JSON means the same after it.
func TestEscape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("\u0085\u2028\u202e\u200b\ufeff\U000E0041\x7f\"\\")))).Draw(t, "text")
		if line := quote.Line(text); strings.ContainsFunc(line, quote.Unseen) {
			t.Fatalf("%q is written %q", text, line)
		}
		written, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		written = []byte(strings.ReplaceAll(string(written), `\u2028`, "\u2028"))
		var again string
		if err := json.Unmarshal([]byte(quote.Escape(string(written))), &again); err != nil || again != text {
			t.Fatalf("%q is read as %q: %v", text, again, err)
		}
	})
}

func TestUnseen(t *testing.T) {
	for _, r := range "\x00\t\n\r\x1b\x1f\x7f\u0080\u0085\u009b\u200b\u200e\u200f\u2028\u2029\u202a\u202e\u2060\u2066\u2069\ufeff\U000E0000\U000E0041\U000E007F" {
		if !quote.Unseen(r) {
			t.Errorf("%U is taken for one that is seen", r)
		}
	}
	// Joiners and selectors are parts of scripts and of emoji.
	for _, r := range " ~\\\"aé\u00a0\u00ad\u200c\u200d\u2027\u2030\ufe0f\ufffd\uffff😀\U000DFFFF\U000E0080\U000E0100" {
		if quote.Unseen(r) {
			t.Errorf("%U is taken for one that is not seen", r)
		}
	}
}

func TestEscapes(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "as it is": "as it is", "é😀": "é😀", "a\u202eb": `a\u202eb`, "\x1b[2J": `\u001b[2J`, "\uffff\U000E0041": "\uffff" + `\udb40\udc41`,
	} {
		if got := quote.Escape(text); got != want {
			t.Errorf("%q is written %q, want %q", text, got, want)
		}
	}
	if got := quote.Line(" two\nlines\t\x1b "); got != `two lines \u001b` {
		t.Errorf("a line: %q", got)
	}
}

func TestLines(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "one": "> one\n", "one\ntwo": "> one\n> two\n", "a\r\nb\rc\vd\fe\u0085f\u2028g\u2029h": "> a\n> b\n> c\n> d\n> e\n> f\n> g\n> h\n", "\n": "> \n> \n",
	} {
		if got := quote.Lines(text); got != want {
			t.Errorf("%q is quoted as %q, want %q", text, got, want)
		}
	}
}
