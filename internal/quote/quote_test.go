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
		strings.Repeat("é", 200): `"` + strings.Repeat("é", 32) + `…"`,
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
