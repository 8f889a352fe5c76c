package budget_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/budget/bpe"
)

var _ budget.Counter = budget.Heuristic{}

func o200k(t testing.TB) *bpe.Encoding {
	t.Helper()
	enc, err := bpe.Open(budget.TokenizerO200K)
	if err != nil {
		t.Fatal(err)
	}
	return enc
}

// ratio is the heuristic's count of a text relative to o200k_base's.
func ratio(t testing.TB, text string) float64 {
	t.Helper()
	return float64(budget.Heuristic{}.Count(text).Tokens) / float64(o200k(t).Count(text).Tokens)
}

// excerpts cuts a text into pieces of about 2 KB.
func excerpts(text string) []string {
	const size = 2000
	var out []string
	for ; len(text) >= 2*size; text = text[size:] {
		out = append(out, text[:size])
	}
	return append(out, text)
}

// samples are excerpts by kind: what is in contexts of coding agents.
func samples(t *testing.T) map[string][]string {
	t.Helper()
	read := func(pattern string) string {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files (%v)", pattern, err)
		}
		var b strings.Builder
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(data)
		}
		return b.String()
	}
	source := read("*.go") + read("bpe/*.go")
	type match struct {
		File string  `json:"file"`
		Line int     `json:"line"`
		Text string  `json:"text"`
		Rank float64 `json:"rank,omitempty"`
	}
	var matches []match
	var listing strings.Builder
	for i, line := range strings.Split(source, "\n") {
		if i%4 == 0 {
			matches = append(matches, match{"internal/budget/models.go", i, line, float64(i%7) / 3})
			listing.WriteString("internal/budget/models.go:" + strings.Repeat("1", i%4) + ": " + strings.TrimSpace(line) + "\n")
		}
	}
	compact, err := json.Marshal(matches)
	if err != nil {
		t.Fatal(err)
	}
	indented, err := json.MarshalIndent(matches, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	binary := make([]byte, 30_000)
	rand.New(rand.NewSource(1)).Read(binary)
	var comments strings.Builder
	for line := range strings.Lines(source) {
		if comment, ok := strings.CutPrefix(strings.TrimSpace(line), "// "); ok {
			comments.WriteString(comment + "\n")
		}
	}
	kinds := map[string][]string{
		"source": excerpts(source), "search": excerpts(listing.String()), "prose": excerpts(comments.String()),
		"json":   append(excerpts(string(compact)), excerpts(string(indented))...),
		"base64": excerpts(base64.StdEncoding.EncodeToString(binary)), "hex": excerpts(hex.EncodeToString(binary)),
		"digits": excerpts(read("bpe/testdata/texts/digits.txt")), "code": excerpts(read("bpe/testdata/texts/code.txt")),
	}
	for i := range 40 {
		mixed := ""
		for _, kind := range []string{"source", "json", "prose", "base64"} {
			mixed += kinds[kind][i%len(kinds[kind])]
		}
		kinds["mixed"] = append(kinds["mixed"], mixed)
	}
	return kinds
}

// TestHeuristicAgainstO200K holds the estimate to a band around the real counts:
// above them in general, and never far below.
func TestHeuristicAgainstO200K(t *testing.T) {
	for kind, texts := range samples(t) {
		var ratios []float64
		for _, text := range texts {
			ratios = append(ratios, ratio(t, text))
		}
		slices.Sort(ratios)
		low, median, high := ratios[0], ratios[len(ratios)/2], ratios[len(ratios)-1]
		t.Logf("%-7s %3d excerpts: %.2f to %.2f, median %.2f", kind, len(ratios), low, high, median)
		if median < 1.0 || median > 1.25 {
			t.Errorf("%s: median ratio %.3f", kind, median)
		}
		if low < 0.8 || high > 1.5 {
			t.Errorf("%s: ratios from %.3f to %.3f", kind, low, high)
		}
	}
}

// TestHeuristicOnScripts checks one line per script or group of scripts.
func TestHeuristicOnScripts(t *testing.T) {
	for _, file := range []string{"prose_scripts.txt", "prose_latin.txt", "emoji.txt", "contractions.txt"} {
		data, err := os.ReadFile("bpe/testdata/texts/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if len(line) < 30 {
				continue
			}
			if r := ratio(t, line); r < 0.7 || r > 2 {
				t.Errorf("%.2f for %q", r, line)
			}
		}
	}
}

// TestHeuristicOnHostileText checks that no kind of long run counts as almost nothing.
func TestHeuristicOnHostileText(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	drawn := func(alphabet string) string {
		runes := []rune(alphabet)
		out := make([]rune, 20_000)
		for i := range out {
			out[i] = runes[random.Intn(len(runes))]
		}
		return string(out)
	}
	const lower = "abcdefghijklmnopqrstuvwxyz"
	for _, text := range []string{
		drawn(lower), drawn(strings.ToUpper(lower)), drawn("ACGT"), drawn("ab"), drawn("0123456789"),
		drawn("0123456789abcdef"), drawn("0123456789ABCDEF"), drawn(lower + strings.ToUpper(lower) + "0123456789+/"),
		drawn("!@#$%^&*()_+-=[]{};:,.<>/?"), drawn(lower + "0123456789"), drawn(lower + " "), drawn(" \n"), drawn("a b\tc\n"),
		drawn("的一是不了人我在有他这为之大来以个中上们"), drawn("籡籣籧籩籭籮籰籲籹籼籽粆粇粏粔粞"), drawn("😀🚀🎉👍🔥"),
		strings.Repeat("A", 20_000), strings.Repeat(" ", 20_000), strings.Repeat("=", 20_000),
		strings.Repeat("\n", 20_000), strings.Repeat("a ", 10_000), strings.Repeat("\x00", 10_000), strings.Repeat("\xff", 10_000),
	} {
		if r := ratio(t, text); r < 0.5 {
			t.Errorf("%.2f for %.40q…", r, text)
		}
	}
}

func TestHeuristicProperties(t *testing.T) {
	h := budget.Heuristic{}
	if h.Name() != budget.TokenizerHeuristic || !h.Count("x").Estimated || h.Count("").Tokens != 0 {
		t.Errorf("%s, %+v, %+v", h.Name(), h.Count("x"), h.Count(""))
	}
	rapid.Check(t, func(t *rapid.T) { checkHeuristic(t, rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")) })
}

func FuzzHeuristic(f *testing.F) {
	f.Add("func main() {\n\t", "\treturn x1\n}\xff日本")
	f.Fuzz(func(t *testing.T, a, b string) { checkHeuristic(t, a, b) })
}

// checkHeuristic checks that a count is bounded by the text's size, and that
// putting texts together costs about what they cost apart.
func checkHeuristic(t interface{ Errorf(string, ...any) }, a, b string) {
	h := budget.Heuristic{}
	first, second, both := h.Count(a).Tokens, h.Count(b).Tokens, h.Count(a+b).Tokens
	for text, n := range map[string]int{a: first, b: second, a + b: both} {
		if (n == 0) != (text == "") || n > 3*len(text) {
			t.Errorf("%d tokens for %q", n, text)
		}
	}
	if diff := both - first - second; diff > 30+len(a+b)/2 || diff < -30-len(a+b)/2 {
		t.Errorf("%d and %d tokens apart, %d together: %q, %q", first, second, both, a, b)
	}
}

func BenchmarkHeuristic(b *testing.B) {
	data, err := os.ReadFile("heuristic.go")
	if err != nil {
		b.Fatal(err)
	}
	scripts, err := os.ReadFile("bpe/testdata/texts/prose_scripts.txt")
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{
		"source": string(data), "scripts": string(scripts), "base64": base64.StdEncoding.EncodeToString(data),
		"spaces": strings.Repeat(" ", 1<<16),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				budget.Heuristic{}.Count(text)
			}
		})
	}
}
