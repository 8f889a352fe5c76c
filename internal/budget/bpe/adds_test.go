package bpe

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
)

// A text costs what its pieces cost, however they are cut, under every counter.
func TestSumIsTheCountOfTheText(t *testing.T) {
	counters := []budget.Counter{budget.Heuristic{}}
	for _, name := range Names() {
		enc, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		counters = append(counters, enc)
	}
	part := rapid.SampledFrom([]string{
		" ", "  ", "\n", "\r", "\t", "/", "//", ".", "_", "'", "'s", "-", "×", "→", "a", "B", "Ab", "7", "12345", "word", " word", "> ",
		"\u00a0", "\u0085", "\u2028", "\u3000", "é", "\u0301", "漢", "ф", "─", "──", "🙂", "\xff", "\xe6\xbc", "\x01", "q9Xz7Rt2Kp4",
	})
	text := rapid.Custom(func(t *rapid.T) (s string) {
		for _, p := range rapid.SliceOfN(part, 0, 4).Draw(t, "parts") {
			s += p
		}
		return s + rapid.SampledFrom([]string{"", "\n", "}\n", " \n"}).Draw(t, "end")
	})
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(text, 0, 6).Draw(t, "texts")
		for _, counter := range counters {
			gauge := budget.NewGauge(counter)
			draft := gauge.Draft(0)
			for _, s := range texts {
				draft.Add(gauge.Piece(s))
			}
			if got, want := draft.Tokens(), gauge.Text(draft.String()); got != want {
				t.Fatalf("%s counts %d in %q, the sum of its pieces is %d", counter.Name(), want, texts, got)
			}
		}
	})
}
