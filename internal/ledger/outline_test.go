package ledger_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/ledger"
)

func TestOutline(t *testing.T) {
	for name, c := range map[string]struct {
		body  string
		limit uint64
		want  string
	}{
		"empty":             {"", 100, ""},
		"prose":             {"nothing\nto see\nin here", 100, ""},
		"order of the body": {"name_z and prose\nprose\nname_a", 100, "name_z and prose\nname_a"},
		"most names per byte first": {
			"name_a stands in a line with very much prose around it\nname_b name_c", 8, "name_b name_c",
		},
		"a shorter line where a longer one has no room": {
			"name_a name_b name_c name_d name_e name_f\nname_g", 5, "name_g",
		},
		"nearly full is full": {
			// 36 tokens of 40; the next line has no room, so the one after is not tried.
			strings.Repeat("name_a ", 19) + "name_b\nname_c name_d\nname_e", 40, strings.Repeat("name_a ", 19) + "name_b",
		},
		"no line twice":              {"name_a\nname_a\nname_a", 100, "name_a"},
		"no line without a new name": {"name_a name_b\nname_b name_a\nname_c", 100, "name_a name_b\nname_c"},
		"blanks at the end":          {"  name_a \t\r\nname_b  ", 100, "  name_a\nname_b"},
		"too little room":            {"name_a", 2, ""},
		"no room":                    {"name_a", 0, ""},
		"long lines are cut":         {"name_a " + strings.Repeat("x", 300), 100, "name_a " + strings.Repeat("x", 153)},
		"between runes":              {"name_a " + strings.Repeat("日", 100), 100, "name_a " + strings.Repeat("日", 51)},
		"names behind the cut":       {strings.Repeat("x ", 100) + "name_a", 100, ""},
		"the end of a long body":     {strings.Repeat("x\n", 128<<10) + "name_a", 100, ""},
		"a rune at the end of what is read": {
			strings.Repeat("x\n", 128<<10-4) + "name_a日本", 100, "name_a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ledger.Outline(c.body, c.limit, quarter); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// outlineOracle looks for the best line that is left, again and again.
func outlineOracle(body string, limit uint64) string {
	lines := strings.Split(body, "\n")
	score := make([]int, len(lines))
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
		score[i] = 1000 * len(identifiersOracle(lines[i])) / (len(lines[i]) + 24)
	}
	tried, picked := make([]bool, len(lines)), make([]bool, len(lines))
	var seen []string
	var used uint64
	for {
		best := -1
		for i := range lines {
			if !tried[i] && len(identifiersOracle(lines[i])) > 0 && (best < 0 || score[i] > score[best]) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		tried[best] = true
		names := identifiersOracle(lines[best])
		if !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(seen, n) }) {
			continue
		}
		if used+quarter.Text(lines[best])+1 > limit {
			if used+limit/8 >= limit {
				break // nearly full is full
			}
			continue
		}
		picked[best] = true
		used += quarter.Text(lines[best]) + 1
		seen = append(seen, names...)
	}
	var out []string
	for i := range lines {
		if picked[i] {
			out = append(out, lines[i])
		}
	}
	return strings.Join(out, "\n")
}

func TestOutlineAgainstLookingForTheBestLine(t *testing.T) {
	word := rapid.SampledFrom([]string{"name_a", "name_b", "src/log.go", "prose", "and more of it", "x", "日本", "NewView(", " "})
	rapid.Check(t, func(t *rapid.T) {
		var lines []string
		for _, words := range rapid.SliceOfN(rapid.SliceOfN(word, 0, 6), 0, 30).Draw(t, "lines") {
			lines = append(lines, strings.Join(words, " "))
		}
		body := strings.Join(lines, "\n")
		limit := rapid.Uint64Range(0, 60).Draw(t, "limit")
		got := ledger.Outline(body, limit, quarter)
		if want := outlineOracle(body, limit); got != want {
			t.Errorf("%q\n got %q\nwant %q", body, got, want)
		}
		if quarter.Text(got) > limit {
			t.Errorf("%d tokens for a limit of %d", quarter.Text(got), limit)
		}
	})
}

func FuzzOutline(f *testing.F) {
	f.Add("name_a\nname_b and prose\n\n/usr/bin", uint64(10))
	f.Add(strings.Repeat("日_本a ", 60)+"name_a", uint64(100))
	f.Fuzz(func(t *testing.T, body string, limit uint64) {
		got := ledger.Outline(body, limit, quarter)
		if got == "" {
			return
		}
		if quarter.Text(got) > limit {
			t.Errorf("%d tokens for a limit of %d", quarter.Text(got), limit)
		}
		if utf8.ValidString(body) && !utf8.ValidString(got) {
			t.Errorf("%q splits a rune", got)
		}
		rest := strings.Split(body, "\n")
		for line := range strings.SplitSeq(got, "\n") {
			at := slices.IndexFunc(rest, func(l string) bool { return strings.HasPrefix(l, line) })
			if at < 0 || len(identifiers(line)) == 0 {
				t.Fatalf("%q is no telling line behind the one before", line)
			}
			rest = rest[at+1:]
		}
	})
}
