package bpe

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
)

var _ budget.Counter = (*Encoding)(nil)

func TestSampleTextsAgreeWithOracle(t *testing.T) {
	eachEncoding(t, func(t *testing.T, enc *Encoding) {
		for file, text := range sampleTexts(t) {
			want := oracle(t, enc.Name()).EncodeOrdinary(text)
			if got := encode(enc, text); !slices.Equal(got, want) {
				i := 0
				for i < min(len(got), len(want)) && got[i] == want[i] {
					i++
				}
				t.Errorf("%s: token %d differs, after %q", file, i, oracle(t, enc.Name()).Decode(want[max(0, i-5):i]))
			}
			// Twice: the second time the pieces come out of the cache.
			for range 2 {
				if got := enc.Count(text); got != (budget.Count{Tokens: len(want)}) {
					t.Errorf("%s: counted %+v, want %d exactly", file, got, len(want))
				}
			}
		}
	})
}

// TestCountsOfTiktoken holds the counts to those of the original where its
// Unicode tables are newer than the oracle's.
func TestCountsOfTiktoken(t *testing.T) {
	file, err := os.Open("testdata/tiktoken.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	n := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		n++
		var want [2]int
		fields := strings.SplitN(lines.Text(), " ", 3)
		if _, err := fmt.Sscan(fields[0]+" "+fields[1], &want[0], &want[1]); err != nil {
			t.Fatal(err)
		}
		var text string
		if err := json.Unmarshal([]byte(fields[2]), &text); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"o200k_base", "cl100k_base"} {
			if got := open(t, name).Count(text); got != (budget.Count{Tokens: want[i]}) {
				t.Errorf("%s: counted %+v for %+q, tiktoken %d", name, got, text, want[i])
			}
		}
	}
	if n < 500 {
		t.Fatalf("only %d strings", n)
	}
}

// genText draws strings in which what the patterns care about is frequent.
func genText() *rapid.Generator[string] {
	part := rapid.OneOf(
		rapid.SampledFrom([]string{
			" ", "  ", "\t", "\n", "\r\n", "\n\n", "\u00a0", "\u3000", "\u2028",
			"'s", "'LL", "'Re", "'", "’s", "/", "//", "!", "...", "{\"", "\":", "<|endoftext|>",
			"a", "B", "the", "The", "THE", "é", "É", "ǅ", "ʰ", "ª", "中", "ไทย", "\u0301", "ـ",
			"1", "12", "1234", "٣", "½", "😀", "👩🏽‍🚀", "\u200d", "\x00", "\x7f", "\xff", "\xe4\xb8", "�",
		}),
		rapid.StringMatching(`[a-zA-Z]{1,12}`),
		rapid.StringMatching(`[ -~]{1,20}`),
		rapid.StringN(1, 6, -1),
		rapid.Map(rapid.SampledFrom([]string{"a", " ", "=", "中", "\n", "ab", "\t ", "é"}),
			func(s string) string { return strings.Repeat(s, 40) }),
	)
	return rapid.Map(rapid.SliceOfN(part, 0, 30), func(parts []string) string { return strings.Join(parts, "") })
}

func TestCountAgreesWithOracle(t *testing.T) {
	eachEncoding(t, func(t *testing.T, enc *Encoding) {
		rapid.Check(t, func(rt *rapid.T) {
			checkAgainstOracle(rt, enc, oracleCount(t, enc), genText().Draw(rt, "text"))
		})
	})
}

func FuzzCount(f *testing.F) {
	for _, text := range sampleTexts(f) {
		f.Add(text)
	}
	f.Add("\xff\xfe\x80 a\xc5's")
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range Names() {
			enc := open(t, name)
			checkAgainstOracle(t, enc, oracleCount(t, enc), text)
		}
	})
}

func oracleCount(t testing.TB, enc *Encoding) func(string) int {
	tk := oracle(t, enc.Name())
	return func(text string) int { return len(tk.EncodeOrdinary(text)) }
}

type reporter interface{ Errorf(string, ...any) }

func checkAgainstOracle(t reporter, enc *Encoding, want func(string) int, text string) {
	got := enc.Count(text)
	if again := enc.Count(text); again != got {
		t.Errorf("%s: %+v, then %+v for %+q", enc.Name(), got, again, text)
	}
	if got.Tokens > 3*len(text) || (text != "" && got.Tokens == 0) {
		t.Errorf("%s: %+v for %d bytes", enc.Name(), got, len(text))
	}
	const quadratic = 20_000 // the oracle takes too long beyond
	if len(text) > quadratic || !oracleKnows(enc.classes, text) {
		return
	}
	if want := want(text); got != (budget.Count{Tokens: want}) {
		t.Errorf("%s: counted %+v, oracle %d, for %+q", enc.Name(), got, want, text)
	}
}

func TestInvalidUTF8CountsAsReplacementCharacters(t *testing.T) {
	eachEncoding(t, func(t *testing.T, enc *Encoding) {
		for _, text := range []string{"\xff", "a\xffb", "\xf0\x9f\x98", strings.Repeat("\xc0", 3000), "ok \xed\xa0\x80 ok"} {
			replaced := string([]rune(text))
			if !utf8.ValidString(replaced) || enc.Count(text) != enc.Count(replaced) {
				t.Errorf("%+q: %+v, but %+v once replaced", text, enc.Count(text), enc.Count(replaced))
			}
		}
	})
}

func TestCountFromManyGoroutines(t *testing.T) {
	eachEncoding(t, func(t *testing.T, enc *Encoding) {
		texts := sampleTexts(t)
		want := map[string]budget.Count{}
		for file, text := range texts {
			want[file] = enc.Count(text)
		}
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for file, text := range texts {
					if got := enc.Count(text); got != want[file] {
						t.Errorf("%s: %+v, alone %+v", file, got, want[file])
					}
				}
			})
		}
		wg.Wait()
		if len(enc.idle) != cap(enc.idle) {
			t.Errorf("%d of %d workers came back", len(enc.idle), cap(enc.idle))
		}
	})
}

func TestCountDoesNotAllocate(t *testing.T) {
	enc := open(t, budget.TokenizerO200K)
	text := sampleTexts(t)["runs.txt"] + sampleTexts(t)["prose_latin.txt"]
	for range cap(enc.idle) {
		enc.Count(text) // so that every worker has its buffers
	}
	if n := testing.AllocsPerRun(20, func() { enc.Count(text) }); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}

func TestOpen(t *testing.T) {
	for _, name := range Names() {
		first, again := open(t, name), open(t, name)
		if first != again || first.Name() != name {
			t.Errorf("%s: opened %p (%s), then %p", name, first, first.Name(), again)
		}
		if !slices.Contains(budget.Tokenizers(), name) {
			t.Errorf("no model may name %s", name)
		}
	}
	if _, err := Open("p50k_base"); err == nil || !strings.Contains(err.Error(), "o200k_base") {
		t.Errorf("unknown encoding: %v", err)
	}
}

// TestCorpusAgreesWithOracle compares on recorded sessions where they are available.
func TestCorpusAgreesWithOracle(t *testing.T) {
	const corpus = "../../../../shared/corpus"
	if _, err := os.Stat(corpus); err != nil {
		t.Skipf("SKIPPED: the corpus of real sessions is not next to the repository: %v", err)
	}
	const sample, perFile = 12, 15_000
	var files []string
	err := filepath.WalkDir(corpus, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(files); i += max(1, len(files)/sample) {
		text := head(t, files[i], perFile)
		for _, name := range Names() {
			enc := open(t, name)
			if want := len(oracle(t, name).EncodeOrdinary(text)); enc.Count(text).Tokens != want {
				t.Errorf("%s: %s: counted %+v, oracle %d", files[i], name, enc.Count(text), want)
			}
		}
	}
}
