package reduce_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/budget/bpe"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

const cutPointer = "ctx:12.0"

// checkCut holds a cut against what it promises: it is within the limit; what it
// keeps are the ends of the text, between runes; and its note counts the rest, and has names that
// are there alone.
func checkCut(t fataler, text string, limit uint64, c reduce.Clipping) {
	short, ok := reduce.CutText(gauge, text, limit, c, cutPointer)
	if !ok {
		if short != "" {
			t.Fatalf("no cut, and %q", short)
		}
		return
	}
	if gauge.Text(text) <= limit || gauge.Text(short) > limit {
		t.Fatalf("cut from %d to %d tokens under a limit of %d", gauge.Text(text), gauge.Text(short), limit)
	}
	if utf8.ValidString(text) && !utf8.ValidString(short) {
		t.Fatalf("cut within a rune: %q", short)
	}
	for start, end := range gaps(text, short) {
		counts := fmt.Sprintf("\n[contextd: %d chars, %d lines cut here",
			utf8.RuneCountInString(text[start:end]), strings.Count(text[start:end], "\n"))
		names, counted := strings.CutPrefix(short[start:len(short)-(len(text)-end)], counts)
		if names, ok := strings.CutSuffix(names, "; "+cutPointer+"]\n"); counted && ok {
			checkNames(t, names, text[:start], text[start:end], text[end:])
			checkShares(t, text, start, len(text)-end, limit, c.HeadTokens, c.TailTokens)
			return
		}
	}
	t.Fatalf("%q is not the ends of the text with a note between them", short)
}

// checkNames checks that a note names what is in the gap and in no end.
func checkNames(t fataler, note, head, gap, tail string) {
	names, ok := strings.CutPrefix(note, ", with the names ")
	if !ok && note != "" {
		t.Fatalf("%q is no list of names", note)
	}
	for name := range strings.FieldsSeq(names) {
		if !strings.Contains(gap, name) || strings.Contains(head, name) || strings.Contains(tail, name) {
			t.Fatalf("%q is named, and is not what was cut out alone", name)
		}
	}
}

// gaps yields every way to read short as a head and a tail of text.
func gaps(text, short string) func(func(int, int) bool) {
	return func(yield func(int, int) bool) {
		for start := range len(short) + 1 {
			if start > len(text) || start > 0 && text[start-1] != short[start-1] {
				return
			}
			rest := short[start:]
			note := strings.Index(rest, cutPointer+"]\n")
			for note >= 0 {
				tail := rest[note+len(cutPointer)+2:]
				if strings.HasSuffix(text, tail) && len(text)-len(tail) >= start && !yield(start, len(text)-len(tail)) {
					return
				}
				next := strings.Index(rest[note+1:], cutPointer+"]\n")
				if next < 0 {
					break
				}
				note += 1 + next
			}
		}
	}
}

// checkShares checks that no end keeps more than what was asked for.
func checkShares(t fataler, text string, head, tail int, limit, headTokens, tailTokens uint64) {
	if headTokens == 0 && tailTokens == 0 {
		headTokens, tailTokens = (2*limit+2)/3, (limit+2)/3
	}
	perToken := float64(len(text)) / float64(gauge.Text(text))
	if most := math.Ceil(float64(min(headTokens, limit)) * perToken); float64(head) > most+utf8.UTFMax {
		t.Fatalf("the head keeps %d bytes of at most %v", head, most)
	}
	if most := math.Ceil(float64(min(tailTokens, limit)) * perToken); float64(tail) > most+utf8.UTFMax {
		t.Fatalf("the tail keeps %d bytes of at most %v", tail, most)
	}
}

func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(prose(5000), rapid.String()).Draw(t, "text")
		limit := rapid.Uint64Range(0, 1500).Draw(t, "limit")
		tokens := rapid.SampledFrom([]uint64{0, 0, 1, 7, 100, 2000, math.MaxUint64})
		checkCut(t, text, limit, reduce.Clipping{
			HeadTokens: tokens.Draw(t, "head"), TailTokens: tokens.Draw(t, "tail"), NameTokens: rapid.SampledFrom([]uint64{0, 20, 150}).Draw(t, "names"),
		})
	})
}

func FuzzCut(f *testing.F) {
	f.Add(reducetest.Lines(100, "output"), uint64(60), uint64(0), uint64(0), uint64(150))
	f.Add("日本\n日本語", uint64(1), uint64(math.MaxUint64), uint64(2), uint64(0))
	f.Fuzz(func(t *testing.T, text string, limit, head, tail, names uint64) {
		checkCut(t, text, limit, reduce.Clipping{HeadTokens: head, TailTokens: tail, NameTokens: names})
	})
}

func TestCutFits(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		limit uint64
		want  bool
	}{
		"fits":           {reducetest.Lines(10, "out"), 1000, false},
		"fits exactly":   {strings.Repeat("x", 400), 100, false},
		"one too many":   {strings.Repeat("x", 401), 100, true},
		"no room at all": {reducetest.Lines(100, "out"), 0, false},
		"no room for it": {reducetest.Lines(100, "out"), 10, false},
		"empty":          {"", 0, false},
	} {
		if _, ok := reduce.CutText(gauge, c.text, c.limit, reduce.Clipping{NameTokens: 20}, cutPointer); ok != c.want {
			t.Errorf("%s: cut %v, want %v", name, ok, c.want)
		}
	}
}

// What lines cost says the same as counting the text.
func TestCutBetweenLinesIsWhatCountingGives(t *testing.T) {
	gauges := []budget.Gauge{gauge, budget.NewGauge(budget.Heuristic{})}
	for _, name := range bpe.Names() {
		enc, err := bpe.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		gauges = append(gauges, budget.NewGauge(enc))
	}
	rapid.Check(t, func(t *rapid.T) {
		g := rapid.SampledFrom(gauges).Draw(t, "gauge")
		line := rapid.SampledFrom([]string{"\n", "}\n", "  indented {\n", "\tx := f(1234)\r\n", "/path/to\n", "no end ", "é漢\n", "\xff\n", " \n", "word word word\n"})
		text := strings.Join(rapid.SliceOfN(line, 0, 60).Draw(t, "lines"), "")
		limit := rapid.Uint64Range(0, 150).Draw(t, "limit")
		ends := rapid.SampledFrom([]uint64{0, 0, 3, 40})
		c := reduce.Clipping{HeadTokens: ends.Draw(t, "head"), TailTokens: ends.Draw(t, "tail"), NameTokens: rapid.Uint64Range(0, 20).Draw(t, "names")}
		got, ok := reduce.CutText(g, text, limit, c, cutPointer)
		want, counted := reduce.CutCounted(g, text, limit, c, cutPointer)
		if got != want || ok != counted {
			t.Fatalf("%s cuts %q to %q, and to %q where each attempt is counted", g.Name(), text, got, want)
		}
		if lines := g.Lines(text); lines.Whole().Bytes != len(text) || g.Tokens(lines.Whole().Cost) != g.Text(text) {
			t.Fatalf("%s: %q is %+v, and counts %d", g.Name(), text, lines.Whole(), g.Text(text))
		}
	})
}
