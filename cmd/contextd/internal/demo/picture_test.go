package demo

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

func draw(t *testing.T, p picture, turns ...Turn) []string {
	t.Helper()
	var out bytes.Buffer
	p.w = &out
	for i := range turns {
		if err := p.turn(&turns[i]); err != nil {
			t.Fatal(err)
		}
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// TestPicture draws turns from a stored --json output, so that only the drawing can change the result.
func TestPicture(t *testing.T) {
	lines, err := os.ReadFile("testdata/picture.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p := picture{w: &out, width: plainWidth}
	for line := range bytes.Lines(lines) {
		var entry struct {
			Turn
			Totals *Totals `json:"totals"`
		}
		if err := json.Unmarshal(line, &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Totals != nil {
			err = p.totals(entry.Totals)
		} else {
			err = p.turn(&entry.Turn)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const golden = "testdata/picture.golden"
	if *Rewrite {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("-rewrite makes %s what is drawn now:\n%s", golden, out.String())
	}
}

func TestLinesFitTheTerminal(t *testing.T) {
	long := Turn{
		Turn: 9999, User: strings.Repeat("wörd ", 100), State: "yellow", TargetTokens: 100_000, RawTokens: 999_999, ProjectedTokens: 99_999,
		StableTokens: 50_000, StableShare: 0.999, FreedTokens: 123_456, Reason: Full, Collapsed: 1234,
		Evicted: map[string]int{"duplicates": 1000, "tool_results": 1000, "clipping": 1000, "thinking": 1000},
	}
	first := long
	first.Turn = 1 // the legend is above it
	for width := leastWidth; width <= mostWidth; width++ {
		for _, line := range draw(t, picture{width: width}, first, long) {
			if n := utf8.RuneCountInString(line); n > width {
				t.Fatalf("at %d columns a line has %d: %q", width, n, line)
			}
		}
	}
}

func TestBarShowsWhatIsCached(t *testing.T) {
	for _, tt := range []struct {
		target, sent, stable uint64
		want                 string
	}{
		{100, 50, 0, "[##########..........]"},
		{100, 50, 25, "[=====#####..........]"},
		{100, 100, 100, "[====================]"},
		{100, 1, 0, "[#...................]"},
	} {
		lines := draw(t, picture{width: plainWidth}, Turn{Turn: 2, State: "green", TargetTokens: tt.target, ProjectedTokens: tt.sent, StableTokens: tt.stable})
		if got := lines[len(lines)-1]; !strings.Contains(got, tt.want) {
			t.Errorf("%d of %d tokens, %d of them cached: %s", tt.sent, tt.target, tt.stable, got)
		}
	}
}

func TestColoursOnlyWhereAsked(t *testing.T) {
	turn := Turn{Turn: 2, State: "red", TargetTokens: 10, ProjectedTokens: 10}
	plain, coloured := draw(t, picture{width: 100}, turn), draw(t, picture{width: 100, colour: true}, turn)
	if strings.Contains(plain[0], "\x1b") || !strings.Contains(coloured[0], "\x1b[31m") {
		t.Errorf("plain %q, coloured %q", plain, coloured)
	}
}

func TestATouchedPrefixNeverReadsWhole(t *testing.T) {
	lines := draw(t, picture{width: 100}, Turn{Turn: 2, State: "green", TargetTokens: 10, StableShare: 0.9999})
	if !strings.Contains(lines[0], "  99%") {
		t.Errorf("got %q", lines[0])
	}
}
