package bpe

import (
	"encoding/base64"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// genRun draws long pieces without a split point.
func genRun(length int) *rapid.Generator[string] {
	unit := rapid.OneOf(
		rapid.SampledFrom([]string{"A", " ", "=", "-", "é", "哈", "😀", "ab", "aab", "ACGT", "abcdefghij", "\u0301", "\xff"}),
		rapid.StringMatching(`[a-z]{1,40}`),
		rapid.StringMatching(`[ab]{200}`),
		rapid.StringMatching(`[a-z]{300}`),
		rapid.StringN(1, 50, -1),
	)
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for b.Len() < length {
			u := unit.Draw(t, "unit")
			b.WriteString(strings.Repeat(u, rapid.IntRange(1, 400/len(u)+1).Draw(t, "times")))
		}
		return b.String()[:length]
	})
}

func TestHeapAgreesWithScan(t *testing.T) {
	eachEncoding(t, func(t *testing.T, enc *Encoding) {
		var short shortParts
		var long longParts
		rapid.Check(t, func(rt *rapid.T) {
			text := genRun(rapid.IntRange(1, len(short.ids)).Draw(rt, "length")).Draw(rt, "text")
			want := enc.merges.mergeShort(text, &short)
			long.merge(enc.merges, text)
			if got := long.count(); got != want {
				rt.Fatalf("heap %d, scan %d tokens for %+q", got, want, text)
			}
			for i, at := 0, int32(0); at != none; i, at = i+1, long.next[at] {
				if long.ids[at] != short.ids[i] {
					rt.Fatalf("token %d: heap %d, scan %d for %+q", i, long.ids[at], short.ids[i], text)
				}
			}
		})
	})
}

func TestWindowsAgreeWithWhole(t *testing.T) {
	eachEncoding(t, func(t *testing.T, enc *Encoding) {
		var short shortParts
		var whole, windowed longParts
		rapid.Check(t, func(rt *rapid.T) {
			piece := genRun(rapid.IntRange(minWindow, longWindow).Draw(rt, "length")).Draw(rt, "text")
			window := rapid.IntRange(minWindow, 2*minWindow).Draw(rt, "window")
			whole.merge(enc.merges, piece)
			got, estimated := windowed.countLong(enc.merges, piece, window, &short)
			if want := whole.count(); got != want || estimated {
				rt.Fatalf("windows of %d: %d (estimated %v), whole %d, for %+q", window, got, estimated, want, piece)
			}
			if windowed.text != "" {
				rt.Fatal("the text is still held")
			}
		})
	})
}

func TestLongRunsAgreeWithOracle(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	letters := make([]byte, 6_000)
	for i := range letters {
		letters[i] = 'a' + byte(random.Intn(26))
	}
	runs := []string{
		strings.Repeat("A", 7_000), strings.Repeat(" ", 7_000), strings.Repeat("哈嘿", 1_000),
		strings.Repeat("👍🏽", 700), strings.Repeat("=", 9_999), strings.Repeat("\t ", 2_501), string(letters),
	}
	eachEncoding(t, func(t *testing.T, enc *Encoding) {
		for _, run := range runs {
			want := len(oracle(t, enc.Name()).EncodeOrdinary(run))
			if got := enc.Count(run); got.Tokens != want || got.Estimated {
				t.Errorf("%.12q… of %d bytes: counted %+v, oracle %d", run, len(run), got, want)
			}
		}
	})
}

// chainVocabulary has a token for each of n pairs of bytes and for each pair of
// successive ones of those, the later the sooner: so a run of them is merged from
// its end, and how it is cut at its front depends on where it ends.
func chainVocabulary(n int) (vocabulary []byte, run string) {
	var b, text strings.Builder
	id := 0
	token := func(s string) {
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(s)), id)
		id++
	}
	for i := range 256 {
		token(string([]byte{byte(i)}))
	}
	link := func(i int) string { return string([]byte{byte(i / 100), byte(100 + i%100)}) }
	for i := range n {
		token(link(i))
		text.WriteString(link(i))
	}
	for i := n - 2; i >= 0; i-- {
		token(link(i) + link(i+1))
	}
	return []byte(b.String()), text.String()
}

func TestCountIsEstimatedWhereNoSeamIsSound(t *testing.T) {
	vocabulary, run := chainVocabulary(1_000)
	merges, err := parseVocabulary(vocabulary)
	if err != nil {
		t.Fatal(err)
	}
	var short shortParts
	var long longParts
	long.merge(merges, run)
	if got := long.count(); got != 500 {
		t.Fatalf("the whole run has %d tokens, want 500", got)
	}
	// A window with an odd number of links leaves its first one single.
	got, estimated := long.countLong(merges, run, minWindow+2, &short)
	if !estimated || got < 500 || got > 520 {
		t.Errorf("counted %d, estimated %v; want an estimate of 500", got, estimated)
	}
	if got, estimated = long.countLong(merges, run, minWindow, &short); got != 500 || estimated {
		t.Errorf("counted %d, estimated %v; want 500 exactly", got, estimated)
	}
}
