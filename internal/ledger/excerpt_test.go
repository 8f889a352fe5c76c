package ledger_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/ledger"
)

func TestExcerpts(t *testing.T) {
	far := strings.Repeat("-", 100)
	for name, c := range map[string]struct {
		add    func(*ledger.Index)
		except string
		limit  uint64
		want   string
	}{
		"nothing": {func(*ledger.Index) {}, "", 100, ""},
		"the line": {
			func(x *ledger.Index) {
				x.AddText("first line of the text\nthe second line has a name_one in its middle part of the text\nthird line of the text")
			}, "", 100, "the second line has a name_one in its middle part of the text",
		},
		"a part of a long line": {
			func(x *ledger.Index) { x.AddText(far + " name_one " + far) }, "", 100,
			strings.Repeat("-", 69) + " name_one " + strings.Repeat("-", 69),
		},
		"where it stood last": {
			func(x *ledger.Index) { x.AddText("older name_one"); x.AddText("newer name_one") }, "", 100, "newer name_one",
		},
		"not in arguments": {
			func(x *ledger.Index) { x.AddText("text with name_one"); x.AddArguments(`{"a":"name_one name_two"}`) }, "", 100, "text with name_one",
		},
		"in arguments that are quoted, where no text has it": {
			func(x *ledger.Index) {
				x.QuoteArguments()
				x.AddArguments("old name_two")
				x.AddText("text with name_one")
				x.AddArguments("arguments with name_one\nand with name_two\nname_three")
			}, "", 100, "text with name_one\nand with name_two",
		},
		"not alone in its line, where arguments are quoted": {
			func(x *ledger.Index) {
				x.QuoteArguments()
				x.AddText("text with name_one")
				x.AddText("  name_one\n")
			}, "", 100, "text with name_one",
		},
		"once": {
			func(x *ledger.Index) { x.AddText("name_one is beside name_two") }, "", 100, "name_one is beside name_two",
		},
		"the highest-ranked last": {
			func(x *ledger.Index) { x.AddText("this is name_one"); x.AddText("that is name_two") }, "", 100, "this is name_one\nthat is name_two",
		},
		"what is not said before": {
			func(x *ledger.Index) { x.AddText("this is name_one"); x.AddText("that is name_two") }, "name_two", 100, "this is name_one",
		},
		"what fits": {
			func(x *ledger.Index) { x.AddText("this is name_one"); x.AddText("that is name_two") }, "", 8, "that is name_two",
		},
		"nothing fits": {func(x *ledger.Index) { x.AddText("this is name_one") }, "", 4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			x := ledger.NewIndex(quarter)
			c.add(x)
			if got := excerpts(x, c.limit, c.except); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// excerpts are the lines that x shows next to a text.
func excerpts(x *ledger.Index, limit uint64, beside string) string {
	shown := x.Shown()
	shown.Grow(beside)
	lines := x.Excerpts(limit, shown, func(line string) string { return line + "\n" })
	return strings.TrimSuffix(budget.Join(lines), "\n")
}

// Every excerpt is in a text as it is written, whole runes only, and all of
// them keep within the limit.
func TestExcerptsAreWhatStoodThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"name_one", "name_two", "src/a.go", "é", "→", " ", "\n", "word", "name_three", strings.Repeat("w", 40)})
		x := ledger.NewIndex(quarter)
		var texts []string
		for _, words := range rapid.SliceOfN(rapid.SliceOfN(word, 0, 30), 0, 8).Draw(t, "texts") {
			text := strings.Join(words, " ")
			texts = append(texts, text)
			x.AddText(text)
		}
		limit := rapid.Uint64Range(0, 200).Draw(t, "limit")
		got := excerpts(x, limit, "")
		if quarter.Text(got) > limit {
			t.Fatalf("%d tokens for a limit of %d: %q", quarter.Text(got), limit, got)
		}
		if !utf8.ValidString(got) {
			t.Fatalf("a rune was cut: %q", got)
		}
		for excerpt := range strings.SplitSeq(got, "\n") {
			found := false
			for _, text := range texts {
				found = found || strings.Contains(text, excerpt)
			}
			if got != "" && !found {
				t.Fatalf("%q stood nowhere", excerpt)
			}
		}
		if again := excerpts(x, limit, ""); again != got {
			t.Fatalf("written twice: %q and %q", got, again)
		}
	})
}
