package bpe

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// TestEveryTokenIsOneToken encodes the text of every token, alone.
func TestEveryTokenIsOneToken(t *testing.T) {
	eachEncoding(t, func(t *testing.T, enc *Encoding) {
		data, err := assets.Assets.ReadFile(enc.Name() + ".tiktoken")
		if err != nil {
			t.Fatal(err)
		}
		var parts shortParts
		id := 0
		for line := range bytes.Lines(data) {
			encoded, _, _ := bytes.Cut(line, []byte{' '})
			token, err := base64.StdEncoding.AppendDecode(nil, encoded)
			if err != nil {
				t.Fatal(err)
			}
			if n := enc.merges.mergeShort(string(token), &parts); n != 1 || parts.ids[0] != uint32(id) {
				t.Errorf("token %d %q: %d tokens, the first is %d", id, token, n, parts.ids[0])
			}
			id++
		}
	})
}

// bytesVocabulary is a vocabulary of the single bytes and of what is given.
func bytesVocabulary(tokens ...string) string {
	var b strings.Builder
	for i := range 256 {
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(i)}), i)
	}
	for i, token := range tokens {
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(token)), 256+i)
	}
	return b.String()
}

// mergedFirst is a vocabulary in which a token comes before its bytes.
func mergedFirst() string {
	var b strings.Builder
	b.WriteString("YWI= 0\n")
	for i := range 256 {
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(i)}), i+1)
	}
	return b.String()
}

// TestMergeTableAgreesWithMap looks up every pair that merges, and neighbours of
// it that mostly do not.
func TestMergeTableAgreesWithMap(t *testing.T) {
	eachEncoding(t, func(t *testing.T, enc *Encoding) {
		reference := map[[2]uint32]uint32{}
		for _, slot := range enc.merges.slots {
			if slot != 0 {
				reference[[2]uint32{uint32(slot >> (2 * tokenBits)), uint32(slot>>tokenBits) & tokenMask}] = uint32(slot & tokenMask)
			}
		}
		if len(reference) < 99_000 {
			t.Fatalf("only %d pairs", len(reference))
		}
		for pair := range reference {
			for _, probe := range [][2]uint32{pair, {pair[0], pair[1] ^ 1}, {pair[0] ^ 1, pair[1]}, {pair[1], pair[0]}} {
				want, ok := reference[probe]
				if !ok {
					want = noToken
				}
				if got := enc.merges.merged(probe[0], probe[1]); got != want {
					t.Fatalf("%v merge into %d, want %d", probe, got, want)
				}
			}
		}
	})
}

func TestParseVocabulary(t *testing.T) {
	merges, err := parseVocabulary([]byte(bytesVocabulary("bc", "ab", "abc", "abcd")))
	if err != nil {
		t.Fatal(err)
	}
	var parts shortParts
	for text, want := range map[string]int{"bc": 1, "ab": 1, "abc": 1, "abcd": 1, "abab": 2, "abcbc": 2, "dcba": 4} {
		if got := merges.mergeShort(text, &parts); got != want {
			t.Errorf("%s: %d tokens, want %d", text, got, want)
		}
	}

	whole := bytesVocabulary()
	for name, bad := range map[string]string{
		"nothing":          "",
		"a byte missing":   whole[:len(whole)-len("/w== 255\n")],
		"a gap in the ids": whole + "YWI= 257\n",
		"no id":            whole + "YWI=\n",
		"id too large":     whole + "YWI= 99999999999\n",
		"negative id":      whole + "YWI= -1\n",
		"no base64":        whole + "Y!I= 256\n",
		"empty token":      whole + " 256\n",
		"empty line":       whole + "\nYWI= 256\n",
		"long token":       bytesVocabulary(strings.Repeat("a", maxToken+1)),
		"byte twice":       bytesVocabulary("a"),
		"token twice":      bytesVocabulary("ab", "ab"),
		"out of reach":     bytesVocabulary("abc"),
		"part comes later": bytesVocabulary("abc", "ab"),
		"merged too early": mergedFirst(),
	} {
		if _, err := parseVocabulary([]byte(bad)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzParseVocabulary(f *testing.F) {
	f.Add([]byte(bytesVocabulary("bc", "ab", "abc", "abcd")))
	f.Add([]byte("YQ== 0\nYg== 1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		merges, err := parseVocabulary(data)
		if err != nil {
			return
		}
		var parts shortParts
		text := string(data[:min(len(data), 100)])
		if n := merges.mergeShort(text, &parts); n < 1 || n > len(text) {
			t.Errorf("%d tokens of %d bytes", n, len(text))
		}
	})
}

func TestParseClasses(t *testing.T) {
	classes, err := parseClasses("41-5A U\n4E00-9FFF C\n10000-10FFFF M\n")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]class{
		"A": upper, "a": 0, "一": caseless, "鿿": caseless, "\U00010000": mark, "\U0010ffff": mark,
		" ": space, "\n": newline, "\u00a0": space, "\u3000": space, "\xff": 0,
	} {
		if got, _ := classes.at(text, 0); got != want {
			t.Errorf("%+q: class %#x, want %#x", text, got, want)
		}
	}
	for _, bad := range []string{"\n", "41-5A", "41-5A X", "5A-41 U", "0-110000 U", "41 U", "x-y U"} {
		if _, err := parseClasses(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func FuzzParseClasses(f *testing.F) {
	f.Add("41-5A U\n61-7A L\n")
	f.Fuzz(func(t *testing.T, text string) {
		if classes, err := parseClasses(text); err == nil {
			classes.at("\U0010ffff", 0)
		}
	})
}

// head is the start of a file, at most n bytes.
func head(t *testing.T, path string, n int64) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, n))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
