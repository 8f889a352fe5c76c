package fileview

import (
	"testing"

	"pgregory.net/rapid"
)

// TestFences: EndFence finds the end of fenced lines, whatever they are and whatever follows them.
func TestFences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := region{from: rapid.IntRange(0, 3).Draw(t, "from")}
		for range rapid.IntRange(1, 5).Draw(t, "lines") {
			text := rapid.StringMatching("[ \t]?`{0,5}[ @1a`]{0,3}").Draw(t, "text")
			r.lines = append(r.lines, &line{text: text})
		}
		fenced := r.fenced(0, len(r.lines))
		if got := EndFence(fenced + rapid.StringMatching("[`\n a]{0,8}").Draw(t, "after")); got != len(fenced) {
			t.Fatalf("%q ends at %d, not %d", fenced, got, len(fenced))
		}
	})
	for text, want := range map[string]int{"": 0, "``@\na\n``\n": 0, "a\n```\n": 0, "```@1\nno end": 12} {
		if got := EndFence(text); got != want {
			t.Errorf("%q ends at %d, not %d", text, got, want)
		}
	}
}
