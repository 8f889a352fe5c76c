package bpe

import (
	"slices"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
	"pgregory.net/rapid"
)

// patterns are the published split patterns of the encodings.
var patterns = map[string]*regexp2.Regexp{
	"o200k_base": regexp2.MustCompile(`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`+
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`+
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`, regexp2.None),
	"cl100k_base": regexp2.MustCompile(`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}`+
		`| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`, regexp2.None),
}

func pieces(enc *Encoding, text string) []string {
	var out []string
	for p := 0; p < len(text); {
		end := enc.split(enc.classes, text, p)
		out = append(out, text[p:end])
		p = end
	}
	return out
}

func patternPieces(t reporter, pattern *regexp2.Regexp, text string) []string {
	var out []string
	m, err := pattern.FindStringMatch(text)
	for ; err == nil && m != nil; m, err = pattern.FindNextMatch(m) {
		out = append(out, m.String())
	}
	if err != nil {
		t.Errorf("%v", err)
	}
	return out
}

func checkPieces(t reporter, enc *Encoding, text string) {
	if !utf8.ValidString(text) || !oracleKnows(enc.classes, text) {
		return
	}
	got, want := pieces(enc, text), patternPieces(t, patterns[enc.Name()], text)
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %+q\nwant %+q", enc.Name(), got, want)
	}
}

func TestSplitFollowsPattern(t *testing.T) {
	eachEncoding(t, func(t *testing.T, enc *Encoding) {
		for _, text := range sampleTexts(t) {
			checkPieces(t, enc, text)
		}
		rapid.Check(t, func(rt *rapid.T) { checkPieces(rt, enc, genText().Draw(rt, "text")) })
	})
}

// TestSplitShortStrings tries every string of up to four characters, one of each
// kind that the patterns distinguish.
func TestSplitShortStrings(t *testing.T) {
	kinds := []string{"a", "B", "中", "\u0301", "7", " ", "\t", "\n", "'", "s", "/", "!"}
	eachEncoding(t, func(t *testing.T, enc *Encoding) {
		var try func(prefix string, left int)
		try = func(prefix string, left int) {
			checkPieces(t, enc, prefix)
			if left == 0 || t.Failed() {
				return
			}
			for _, kind := range kinds {
				try(prefix+kind, left-1)
			}
		}
		try("", 4)
	})
}

func FuzzSplit(f *testing.F) {
	for _, text := range sampleTexts(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range Names() {
			enc := open(t, name)
			n := 0
			for _, piece := range pieces(enc, text) {
				if piece == "" {
					t.Fatalf("%s: empty piece", name)
				}
				n += len(piece)
			}
			if n != len(text) {
				t.Errorf("%s: pieces hold %d of %d bytes", name, n, len(text))
			}
			if len(text) < 5000 {
				checkPieces(t, enc, text)
			}
		}
	})
}

// The long s folds to s, as in tiktoken; the oracles do not know.
func TestContractionWithLongS(t *testing.T) {
	for name, want := range map[string][]string{
		"o200k_base":  {"a'ſ", "t", " '", "ſt'ſ"},
		"cl100k_base": {"a", "'ſ", "t", " '", "ſt", "'ſ"},
	} {
		if got := pieces(open(t, name), "a'ſt 'ſt'ſ"); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestClassesAgreeWithUnicodePackage compares all code points that the toolchain
// knows and that were assigned when the table was made.
func TestClassesAgreeWithUnicodePackage(t *testing.T) {
	classes, err := loadClasses()
	if err != nil {
		t.Fatal(err)
	}
	// Its category became another one with Unicode 16.
	changed := map[rune]bool{0x1171e: true}
	agreed := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		want := unicodeClass(r)
		got, _ := classes.at(string(r), 0)
		switch {
		case !utf8.ValidRune(r) || changed[r]:
		case got == want:
			if got != 0 {
				agreed++
			}
		case unicode.Is(unicode.Cn, r):
			// Assigned since the toolchain's tables were made.
		case got == 0 && unicode.Version > "16.0.0":
			// Assigned since this table was made.
		default:
			t.Errorf("%U: class %#x, by the unicode package %#x", r, got, want)
		}
	}
	if agreed < 135_000 {
		t.Errorf("only %d characters have a class", agreed)
	}
}
