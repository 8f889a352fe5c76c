package ledger_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/ledger"
)

func TestIndexRanks(t *testing.T) {
	repeat := func(n int, step func(*ledger.Index)) func(*ledger.Index) {
		return func(x *ledger.Index) {
			for range n {
				step(x)
			}
		}
	}
	text := func(s string) func(*ledger.Index) { return func(x *ledger.Index) { x.AddText(s) } }
	arguments := func(s string) func(*ledger.Index) { return func(x *ledger.Index) { x.AddArguments(s) } }
	for name, c := range map[string]struct {
		steps  []func(*ledger.Index)
		except string
		limit  uint64
		want   string
	}{
		"nothing":                    {nil, "", 100, ""},
		"prose":                      {[]func(*ledger.Index){text("nothing to see here")}, "", 100, ""},
		"equal ones, by name":        {[]func(*ledger.Index){text("name_b name_c name_a")}, "", 100, "name_a name_b name_c"},
		"used more often":            {[]func(*ledger.Index){repeat(3, text("name_b")), text("name_a")}, "", 100, "name_b name_a"},
		"newer of equal ones":        {[]func(*ledger.Index){text("name_a"), text("name_b")}, "", 100, "name_b name_a"},
		"once per text":              {[]func(*ledger.Index){text("name_b name_b name_b"), text("name_a")}, "", 100, "name_a name_b"},
		"arguments weigh four texts": {[]func(*ledger.Index){arguments("name_c"), repeat(3, text("name_a")), repeat(5, text("name_b"))}, "", 100, "name_b name_c name_a"},
		"halved after 60 texts":      {[]func(*ledger.Index){repeat(2, text("name_b")), repeat(59, text("-")), text("name_a")}, "", 100, "name_a name_b"},
		"not before":                 {[]func(*ledger.Index){repeat(2, text("name_b")), repeat(58, text("-")), text("name_a")}, "", 100, "name_b name_a"},
		"never quite to nothing":     {[]func(*ledger.Index){repeat(2, text("name_b")), text("name_a"), repeat(1000, text("-"))}, "", 100, "name_b name_a"},
		"shorter of equal ones":      {[]func(*ledger.Index){text("name_a/long"), text("name_b/much/longer")}, "", 100, "name_a/long name_b/much/longer"},
		"longer, but used more":      {[]func(*ledger.Index){text("name_a"), repeat(3, text("name_b/much/longer"))}, "", 100, "name_b/much/longer name_a"},
		"names before dates":         {[]func(*ledger.Index){repeat(4, text("name_abcde 2026-01-02")), text("name_fghij")}, "", 100, "name_abcde name_fghij 2026-01-02"},
		"names before URLs":          {[]func(*ledger.Index){repeat(4, text("http://host/a")), text("name_abcdefgh")}, "", 100, "name_abcdefgh http://host/a"},
		"except":                     {[]func(*ledger.Index){text("name_a name_b src/name_c")}, "read src/name_c → ok\nname_b.go", 100, "name_a"},
		"limit":                      {[]func(*ledger.Index){text("name_a name_b name_c")}, "", 4, "name_a name_b"},
		"limit for one":              {[]func(*ledger.Index){text("name_a name_b name_c")}, "", 3, "name_a"},
		"limit for none":             {[]func(*ledger.Index){text("name_a name_b name_c")}, "", 1, ""},
		"no limit to speak of":       {[]func(*ledger.Index){text("name_a name_b")}, "", math.MaxUint64, "name_a name_b"},
		"a limit beyond arithmetic":  {[]func(*ledger.Index){text("name_a name_b")}, "", 1 << 61, "name_a name_b"},
	} {
		t.Run(name, func(t *testing.T) {
			x := ledger.NewIndex(quarter)
			for _, step := range c.steps {
				step(x)
			}
			if got := index(x, c.limit, c.except); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// index is what x writes next to a text.
func index(x *ledger.Index, limit uint64, beside string) string {
	shown := x.Shown()
	shown.Grow(beside)
	return budget.Join(x.Write(limit, shown))
}

// indexOracle ranks by going through all texts again for every name.
func indexOracle(texts []string, weights []int, limit uint64, except string) string {
	type ranked struct {
		name string
		rank float64
		last int
	}
	var all []ranked
	for i, text := range texts {
		for _, name := range identifiersOracle(text) {
			uses, last := 0, i
			for j, other := range texts {
				if slices.Contains(identifiersOracle(other), name) {
					uses += weights[j]
					last = j
				}
			}
			r := ranked{name, float64(uses) * math.Pow(0.5, float64((len(texts)-1-last)/60)) / float64(len(name)+20), last}
			if !slices.Contains(all, r) && !strings.Contains(except, name) {
				all = append(all, r)
			}
		}
	}
	slices.SortFunc(all, func(a, b ranked) int {
		switch {
		case a.rank != b.rank:
			return int(math.Copysign(1, b.rank-a.rank))
		case a.last != b.last:
			return b.last - a.last
		}
		return strings.Compare(a.name, b.name)
	})
	out := ""
	for _, r := range all {
		next := strings.TrimPrefix(out+" "+r.name, " ")
		if quarter.Text(next) > limit {
			break
		}
		out = next
	}
	return out
}

func TestIndexAgainstCountingAnew(t *testing.T) {
	name := rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprintf("name_%d", rapid.IntRange(0, 30).Draw(t, "n"))
	})
	rapid.Check(t, func(t *rapid.T) {
		x := ledger.NewIndex(quarter)
		var texts []string
		var weights []int
		for _, names := range rapid.SliceOfN(rapid.SliceOfN(name, 0, 4), 0, 80).Draw(t, "texts") {
			text := strings.Join(names, " and ")
			texts = append(texts, text)
			if rapid.IntRange(0, 2).Draw(t, "as") == 0 {
				x.AddArguments(text)
				weights = append(weights, 4)
			} else {
				x.AddText(text)
				weights = append(weights, 1)
			}
		}
		except := strings.Join(rapid.SliceOfN(name, 0, 3).Draw(t, "except"), "\n")
		limit := rapid.Uint64Range(0, 80).Draw(t, "limit")
		got := index(x, limit, except)
		if want := indexOracle(texts, weights, limit, except); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if again := index(x, limit, except); again != got {
			t.Errorf("written twice: %q and %q", got, again)
		}
	})
}

// Names that the text holds are omitted, and no others.
func TestIndexLeavesOutWhatIsHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := ledger.NewIndex(quarter)
		for _, name := range rapid.SliceOfN(rapid.StringMatching(`[ab]{1,3}/[ab]{1,3}\.go`), 1, 20).Draw(t, "names") {
			x.AddText(name)
		}
		except := rapid.StringMatching(`([ab/]{0,5}(\.go)?){0,6}`).Draw(t, "except")
		var want []string
		for _, name := range strings.Fields(index(x, 1<<40, "")) {
			if !strings.Contains(except, name) {
				want = append(want, name)
			}
		}
		if got := strings.Fields(index(x, 1<<40, except)); !slices.Equal(got, want) {
			t.Fatalf("%q leaves %q, want %q", except, got, want)
		}
	})
}
