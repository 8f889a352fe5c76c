package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/ledger"
)

func TestPlace(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"file_path":"a/b.go","limit":3}`:            "a/b.go",
		`{"command":"cd /w && go test ./..."}`:        "go",
		`{"cmd":["bash","-lc","rg -n 'x' a.go"]}`:     "rg",
		`{"command":"cd /w"}`:                         "tool",
		`{"pattern":"x"}`:                             "tool",
		`no JSON`:                                     "tool",
		`{"path":"a\nb"}`:                             "tool",
		`{"command":"cat > x.go <<'EOF'\nmake\nEOF"}`: "cat",
	} {
		if got := ledger.Place("tool", arguments); got != want {
			t.Errorf("%s: %q, want %q", arguments, got, want)
		}
	}
}

// addPlaces has the index of two files and of what was said.
func addPlaces(x *ledger.Index) {
	x.From("src/pkg/one.go", "ctx:1.0")
	x.AddArguments(`src/pkg/one.go`)
	x.AddText("func first_a() {\n  first_b()\n}\nfunc first_c\nfunc first_d\nfunc first_e\nfunc first_f")
	x.From("src/pkg/two.go", "ctx:2.0")
	x.AddText("func second_a")
	x.From("src/pkg/one.go", "ctx:3.0")
	x.AddText("it was written")
	x.From("messages", "")
	x.AddOwn("now for talked_a")
}

func TestLinesAndNamesByPlace(t *testing.T) {
	x := ledger.NewIndex(quarter)
	addPlaces(x)
	for beside, want := range map[string]string{
		"": `func second_a
now for talked_a
from src/pkg/one.go ctx:1.0
func first_a() {
  first_b()
func first_c
func first_d
func first_e
func first_f`,
		"read src/pkg/one.go first_f": `func second_a
now for talked_a
from pkg/one.go ctx:1.0
func first_a() {
  first_b()
func first_c
func first_d
func first_e`,
		"first_a first_b first_c first_d first_e": "func second_a\nnow for talked_a\nfunc first_f",
	} {
		if got := excerpts(x, 1000, strings.TrimSpace(beside)); got != want {
			t.Errorf("beside %q:\n%s\nwant\n%s", beside, got, want)
		}
	}
	for beside, want := range map[string]string{
		"":                "in src/pkg/one.go: first_a first_b first_c first_d first_e first_f\nelsewhere: talked_a second_a",
		"src/pkg/one.go":  "in pkg/one.go: first_a first_b first_c first_d first_e first_f\nelsewhere: talked_a second_a",
		"first_a first_b": "src/pkg/one.go first_c first_d first_e first_f talked_a second_a",
	} {
		got := index(x, 1000, beside)
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
			t.Errorf("beside %q:\n%s\nwant\n%s", beside, got, want)
		}
	}
}

// TestPointersOverLines: a heading has the pointers of the newest calls that returned its lines, each once, and two
// lines are enough for one.
func TestPointersOverLines(t *testing.T) {
	for want, pointers := range map[string][]string{
		"func name_0": {"ctx:1.0"},
		"from f.go ctx:1.0\nfunc name_0\nfunc name_1":                                           {"ctx:1.0", "ctx:1.0"},
		"from f.go ctx:2.0 ctx:3.0 ctx:4.0\nfunc name_0\nfunc name_1\nfunc name_2\nfunc name_3": {"ctx:1.0", "ctx:2.0", "ctx:3.0", "ctx:4.0"},
	} {
		x := ledger.NewIndex(quarter)
		for i, pointer := range pointers {
			x.From("f.go", pointer)
			x.AddText(fmt.Sprintf("func name_%d", i))
		}
		if got := excerpts(x, 1000, ""); got != want {
			t.Errorf("%q:\n%s\nwant\n%s", pointers, got, want)
		}
	}
}

// Names and lines of any places keep within the limit, and each is there once.
func TestPlacesKeepWithinTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := ledger.NewIndex(quarter)
		for range rapid.IntRange(1, 30).Draw(t, "texts") {
			if n := rapid.IntRange(0, 3).Draw(t, "place"); n > 0 {
				x.From(strings.Repeat(fmt.Sprintf("dir%d/", n), n)+"file.go", fmt.Sprintf("ctx:%d.0", n))
			}
			x.AddText(strings.Join(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
				return fmt.Sprintf("name_%d", rapid.IntRange(0, 40).Draw(t, "name"))
			}), 0, 12).Draw(t, "names"), rapid.SampledFrom([]string{" ", "\n"}).Draw(t, "between")))
		}
		limit := rapid.Uint64Range(0, 120).Draw(t, "limit")
		for _, text := range []string{excerpts(x, limit, ""), index(x, limit, "dir1/file.go")} {
			if got := quarter.Text(text); got > limit {
				t.Fatalf("%d tokens of %d:\n%s", got, limit, text)
			}
		}
		seen := map[string]bool{}
		for _, name := range strings.Fields(index(x, limit, "")) {
			if strings.HasPrefix(name, "name_") && seen[name] {
				t.Fatalf("%s is listed twice", name)
			}
			seen[name] = true
		}
	})
}
