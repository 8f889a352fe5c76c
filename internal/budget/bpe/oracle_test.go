package bpe

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// oracles are tiktoken-go's encodings: slow, and right but for letters that are
// younger than its Unicode tables.
var oracles = map[string]func() (*tiktoken.Tiktoken, error){
	"o200k_base":  sync.OnceValues(func() (*tiktoken.Tiktoken, error) { return tiktoken.GetEncoding("o200k_base") }),
	"cl100k_base": sync.OnceValues(func() (*tiktoken.Tiktoken, error) { return tiktoken.GetEncoding("cl100k_base") }),
}

func TestMain(m *testing.M) {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	os.Exit(m.Run())
}

func oracle(t testing.TB, name string) *tiktoken.Tiktoken {
	t.Helper()
	enc, err := oracles[name]()
	if err != nil {
		t.Fatal(err)
	}
	return enc
}

func open(t testing.TB, name string) *Encoding {
	t.Helper()
	enc, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return enc
}

// eachEncoding runs a test once per encoding.
func eachEncoding(t *testing.T, test func(t *testing.T, enc *Encoding)) {
	t.Helper()
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) { test(t, open(t, name)) })
	}
}

// encode returns the ids after a count, piece by piece, without cache and
// windows. Pieces must not be longer than a window.
func encode(enc *Encoding, text string) []int {
	var ids []int
	var short shortParts
	var long longParts
	for p := 0; p < len(text); {
		end := enc.split(enc.classes, text, p)
		if piece := text[p:end]; len(piece) <= maxShort {
			for _, id := range short.ids[:enc.merges.mergeShort(piece, &short)] {
				ids = append(ids, int(id))
			}
		} else {
			long.merge(enc.merges, piece)
			for at := int32(0); at != none; at = long.next[at] {
				ids = append(ids, int(long.ids[at]))
			}
		}
		p = end
	}
	return ids
}

// oracleKnows reports whether tiktoken-go splits the text as tiktoken does: its
// letters must be of the same class in the unicode package, which it uses, and
// the long s, of which it does not know that it folds to s, must not occur.
func oracleKnows(t *classTable, text string) bool {
	for i := 0; i < len(text); {
		r, _ := utf8.DecodeRuneInString(text[i:])
		c, n := t.at(text, i)
		if c != unicodeClass(r) || r == 'ſ' {
			return false
		}
		i += n
	}
	return true
}

// unicodeClass is the class of r by the toolchain's tables.
func unicodeClass(r rune) class {
	switch {
	case r == '\r' || r == '\n':
		return newline
	case unicode.IsSpace(r):
		return space
	case unicode.In(r, unicode.Lu, unicode.Lt):
		return upper
	case unicode.Is(unicode.Ll, r):
		return lower
	case unicode.IsLetter(r):
		return caseless
	case unicode.IsMark(r):
		return mark
	case unicode.IsNumber(r):
		return number
	default:
		return 0
	}
}

// sampleTexts are the checked-in texts by file name.
func sampleTexts(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/texts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sample texts: %v", err)
	}
	texts := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(data)
	}
	return texts
}
