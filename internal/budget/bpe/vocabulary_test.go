package bpe

import (
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

var rewrite = flag.Bool("rewrite", false, "write the files of merges again")

// parseVocabulary reads lines of a token in base64, a space, and its id, which is
// also its rank: of two merges the one that yields the lower id comes first. The
// ids must count up from 0, every single byte must be a token, and every longer
// one must be what its bytes merge into by way of lower ids: then the merges say
// all there is to know, and the tokens themselves are not kept.
func parseVocabulary(data []byte) (*mergeTable, error) {
	m := newMergeTable(bytes.Count(data, []byte{'\n'}) + 1)
	longer, err := m.readTokens(data)
	if err != nil {
		return nil, err
	}
	if missing := m.missingByte(); missing >= 0 {
		return nil, fmt.Errorf("the byte %#02x is not a token", missing)
	}
	var parts shortParts
	for id, token := range longer {
		if token == nil {
			continue
		}
		// Merges into lower ids are known by now: they leave the two parts that
		// this token is made of.
		n := m.mergeShort(string(token), &parts)
		if n != 2 || max(parts.ids[0], parts.ids[1]) >= uint32(id) {
			return nil, fmt.Errorf("line %d: no merge of two tokens yields %q", id+1, token)
		}
		m.add(parts.ids[0], parts.ids[1], uint32(id))
		if len(token) == 2 {
			m.bytePairs[pair(token[0], token[1])] = uint32(id)
		}
	}
	return m, nil
}

// readTokens sets the ids of single bytes and returns the longer tokens by id.
func (m *mergeTable) readTokens(data []byte) ([][]byte, error) {
	var longer [][]byte
	text := make([]byte, 0, len(data)/2)
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte{'\n'})
		data = rest
		id := len(longer)
		encoded, rank, _ := bytes.Cut(line, []byte{' '})
		if n, err := strconv.ParseUint(string(rank), 10, tokenBits); err != nil || int(n) != id {
			return nil, fmt.Errorf("line %d: want a token in base64 and the id %d, have %q", id+1, id, line)
		}
		start := len(text)
		var err error
		if text, err = base64.StdEncoding.AppendDecode(text, encoded); err != nil {
			return nil, fmt.Errorf("line %d: %w", id+1, err)
		}
		token := text[start:]
		switch {
		case len(token) == 0 || len(token) > maxToken:
			return nil, fmt.Errorf("line %d: token of %d bytes; 1 to %d are possible", id+1, len(token), maxToken)
		case len(token) == 1 && m.byteIDs[token[0]] != noToken:
			return nil, fmt.Errorf("line %d: the byte %#02x is a token already", id+1, token[0])
		case len(token) == 1:
			m.byteIDs[token[0]] = uint32(id)
			longer = append(longer, nil)
		default:
			longer = append(longer, token)
		}
	}
	return longer, nil
}

// asMerges writes a vocabulary as readMerges reads it.
func asMerges(m *mergeTable, tokens int) []byte {
	all := make([]uint64, tokens)
	for b, id := range m.byteIDs {
		all[id] = singleByte | uint64(b)
	}
	for _, slot := range m.slots {
		if slot != 0 {
			all[slot&tokenMask] = slot >> tokenBits
		}
	}
	var out []byte
	for _, token := range all {
		for range mergeBytes {
			out = append(out, byte(token))
			token >>= 8
		}
	}
	return out
}

// TestVocabulariesAsMerges holds what is in the program to the vocabularies of the loader.
func TestVocabulariesAsMerges(t *testing.T) {
	for _, name := range Names() {
		data, err := assets.Assets.ReadFile(name + ".tiktoken")
		if err != nil {
			t.Fatal(err)
		}
		want, err := parseVocabulary(data)
		if err != nil {
			t.Fatal(err)
		}
		if file := name + ".merges"; *rewrite {
			if err := os.WriteFile(file, asMerges(want, bytes.Count(data, []byte{'\n'})), 0o600); err != nil {
				t.Fatal(err)
			}
			continue // the program has it when it is built again
		}
		got, err := loadMerges(name)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the merges are not those of the vocabulary", name)
		}
	}
}

func TestReadMerges(t *testing.T) {
	table, err := parseVocabulary([]byte(bytesVocabulary("bc", "ab", "abc")))
	if err != nil {
		t.Fatal(err)
	}
	whole := asMerges(table, 259)
	if got, err := readMerges(whole); err != nil || !reflect.DeepEqual(got, table) {
		t.Fatalf("what was written is not what is read: %v", err)
	}
	number := func(n uint64) []byte {
		return []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24), byte(n >> 32)}
	}
	for name, bad := range map[string][]byte{
		"nothing":              {},
		"half a token":         whole[:len(whole)-1],
		"a byte missing":       whole[mergeBytes : 256*mergeBytes],
		"a byte twice":         append(slices.Clone(whole), number(singleByte|'a')...),
		"no byte":              append(slices.Clone(whole), number(singleByte|0x100)...),
		"merged twice":         append(slices.Clone(whole), whole[256*mergeBytes:257*mergeBytes]...),
		"a part that is later": append(slices.Clone(whole), number(259<<tokenBits)...),
		"too many":             bytes.Repeat(number(1), 1<<tokenBits+1),
	} {
		if _, err := readMerges(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

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

func FuzzReadMerges(f *testing.F) {
	table, err := parseVocabulary([]byte(bytesVocabulary("bc", "ab", "abc")))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(asMerges(table, 259))
	f.Fuzz(func(t *testing.T, data []byte) {
		merges, err := readMerges(data)
		checkMerges(t, merges, err, data)
	})
}

func FuzzParseVocabulary(f *testing.F) {
	f.Add([]byte(bytesVocabulary("bc", "ab", "abc", "abcd")))
	f.Add([]byte("YQ== 0\nYg== 1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		merges, err := parseVocabulary(data)
		checkMerges(t, merges, err, data)
	})
}

// checkMerges encodes what merges were read from, if they could be.
func checkMerges(t *testing.T, merges *mergeTable, err error, data []byte) {
	t.Helper()
	if err != nil {
		return
	}
	var parts shortParts
	text := string(data[:min(len(data), 100)])
	if n := merges.mergeShort(text, &parts); n < 1 || n > len(text) {
		t.Errorf("%d tokens of %d bytes", n, len(text))
	}
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
