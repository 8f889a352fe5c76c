package ledger_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/ledger"
)

func TestNames(t *testing.T) {
	words := func(s string) uint64 { return uint64(len(strings.Fields(s))) }
	body := "open src/once.go\nopen src/often.go\nclose src/often.go\nsee src/shown.go and 1234567890123\n"
	for limit, want := range map[uint64]string{0: "", 1: "src/often.go", 2: "src/often.go src/once.go", 9: "src/often.go src/once.go 1234567890123"} {
		if got := ledger.Names(body, "src/shown.go:3", limit, words); got != want {
			t.Errorf("%d tokens: %q, want %q", limit, got, want)
		}
	}
	if got := ledger.Names("nothing of note", "", 9, words); got != "" {
		t.Errorf("of prose: %q", got)
	}
}

// What is listed is in the body, not in what is shown, and fits.
func TestNamesKeepToTheBody(t *testing.T) {
	count := func(s string) uint64 { return uint64(len(s)+3) / 4 }
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"src/a_file.go", "HandlerFunc", "x", "\n", " ", "v1.2.3", "é", "_private_name", "::", "12:34:56"})
		body := strings.Join(rapid.SliceOf(piece).Draw(t, "body"), "")
		shown := strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, "shown"), "")
		limit := rapid.Uint64Range(0, 40).Draw(t, "limit")
		got := ledger.Names(body, shown, limit, count)
		if count(got) > limit {
			t.Fatalf("%q takes %d of %d", got, count(got), limit)
		}
		for _, name := range strings.Fields(got) {
			if !strings.Contains(body, name) || strings.Contains(shown, name) {
				t.Fatalf("%q of %q beside %q", name, body, shown)
			}
		}
	})
}
