package ledger_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/ledger"
)

// words counts a token for every word.
type words struct{}

func (words) Name() string { return "words" }

func (words) Count(text string) budget.Count { return budget.Count{Tokens: len(strings.Fields(text))} }

func (w words) Cost(text string) uint64 { return uint64(w.Count(text).Tokens) }

func (words) PerToken() uint64 { return 1 }

func TestNames(t *testing.T) {
	words := budget.NewGauge(words{})
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
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"src/a_file.go", "HandlerFunc", "x", "\n", " ", "v1.2.3", "é", "_private_name", "::", "12:34:56"})
		body := strings.Join(rapid.SliceOf(piece).Draw(t, "body"), "")
		shown := strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, "shown"), "")
		limit := rapid.Uint64Range(0, 40).Draw(t, "limit")
		got := ledger.Names(body, shown, limit, quarter)
		if quarter.Text(got) > limit {
			t.Fatalf("%q takes %d of %d", got, quarter.Text(got), limit)
		}
		for _, name := range strings.Fields(got) {
			if !strings.Contains(body, name) || strings.Contains(shown, name) {
				t.Fatalf("%q of %q beside %q", name, body, shown)
			}
		}
	})
}
