package fileview

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/costtest"
	"github.com/contextd/contextd/internal/fileview/fileop"
)

// placeIn is the offset of an edit's first place in the joined lines of a region, at or after from; -1 if
// there is none.
func placeIn(text string, e edit, from int) int {
	for from <= len(text) {
		n := strings.Index(text[from:], e.old)
		if n < 0 {
			return -1
		}
		at := from + n
		end := at + len(e.old)
		if (!e.begins || at == 0 || text[at-1] == '\n') && (!e.ends || end == len(text) || text[end] == '\n') {
			return at
		}
		from = at + 1
	}
	return -1
}

// TestEditsAreFound: after any changes of a file's lines, find returns all places of an edit that its
// regions' text has.
func TestEditsAreFound(t *testing.T) {
	often := rapid.SampledFrom([]string{"", "a", "ab", "abab", "return nil, err", "func one(ctx)", "func two(ctx)", "}"})
	seldom := rapid.Map(rapid.IntRange(0, 400), func(i int) string { return fmt.Sprintf("case %d of many", i) })
	word := rapid.OneOf(often, seldom, seldom)
	texts := func(t *rapid.T, least, most int) []string {
		n := rapid.IntRange(least, most).Draw(t, "many")
		return rapid.SliceOfN(word, n, n).Draw(t, "lines")
	}
	rapid.Check(t, func(t *rapid.T) {
		v := NewViews()
		v.Add(Call{})
		f := v.file("", "a.go")
		v.show(f, regionOf(1, v.fresh(texts(t, 2*chunkLines, 5*chunkLines), false)))
		for range rapid.IntRange(0, 12).Draw(t, "changes") {
			put := v.fresh(texts(t, 1, 100), true)
			switch rapid.IntRange(0, 2).Draw(t, "change") {
			case 0:
				v.show(f, regionOf(rapid.IntRange(0, 400).Draw(t, "from"), put))
			case 1:
				v.insert(f, fileop.Operation{From: rapid.IntRange(0, 300).Draw(t, "from"), New: strings.Join(texts(t, 1, 5), "\n")})
			case 2:
				v.replace(f, fileop.Operation{Old: strings.Join(texts(t, 1, 3), "\n"), New: strings.Join(texts(t, 0, 4), "\n"), All: rapid.Bool().Draw(t, "all")}, "")
			}
			lines := f.regions[0].lines
			from := rapid.IntRange(0, max(len(lines)-3, 0)).Draw(t, "old")
			old := region{lines: lines[from:min(from+rapid.IntRange(1, 3).Draw(t, "many"), len(lines))]}
			e := edit{old: old.text(), begins: rapid.Bool().Draw(t, "begins"), ends: rapid.Bool().Draw(t, "ends")}
			if e.old == "" {
				continue
			}
			var want, got []string
			for i := range f.regions {
				text := f.regions[i].text()
				for at := placeIn(text, e, 0); at >= 0; at = placeIn(text, e, at+1) {
					line := strings.Count(text[:at], "\n")
					want = append(want, fmt.Sprint(i, ":", line, ".", at-strings.LastIndexByte("\n"+text[:at], '\n')))
				}
			}
			w := e.wanted()
			for at := (place{}); ; {
				found, ok := f.find(w, at, len(f.regions), func(*region) bool { return true })
				if !ok {
					break
				}
				got = append(got, fmt.Sprint(found.region, ":", found.line, ".", found.column))
				if at = found; at.column < len(f.regions[at.region].lines[at.line].text) {
					at.column++
				} else {
					at.line, at.column = at.line+1, 0
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%+v is at %v instead of %v", e, got, want)
			}
			checkSieve(t, f)
		}
	})
}

// checkSieve: the chunks cover the file's lines and hold the grams of each.
func checkSieve(t *rapid.T, f *file) {
	var all []*line
	for _, r := range f.regions {
		all = append(all, r.lines...)
		if r.bytes != bytesOf(r.lines) {
			t.Fatalf("%d bytes are counted as %d", bytesOf(r.lines), r.bytes)
		}
	}
	s := f.sieve
	if s == nil || s.worn {
		return
	}
	for n, c := range s.chunks {
		for range c.lines {
			if len(all) == 0 {
				t.Fatalf("chunk %d of %d has lines that are not there", n, len(s.chunks))
			}
			var grams []uint32
			for i := range gramsIn(all[0].text) {
				grams = append(grams, gram(all[0].text, i))
			}
			if missing := 0; !c.may(grams, &missing) {
				t.Fatalf("chunk %d of %d is said to be without %q", n, len(s.chunks), all[0].text)
			}
			all = all[1:]
		}
	}
	if len(all) > 0 {
		t.Fatalf("%d lines are in no chunk", len(all))
	}
}

// TestSubstituteAtTheEnd: nothing comes after a last line that became shorter than the text put in.
func TestSubstituteAtTheEnd(t *testing.T) {
	v := NewViews()
	v.Add(Call{Operations: []fileop.Operation{{Kind: fileop.Write, Path: "a.go", New: "one\ntwo\n"}}})
	v.Add(Call{Operations: []fileop.Operation{{Kind: fileop.Substitute, Path: "a.go", Old: "two", New: "three\r", ByLine: true}}})
	if got := v.known("", "a.go").regions[0].text(); got != "one\nthree" {
		t.Errorf("%q", got)
	}
}

// TestFilesOfOneNameKeepTheirOrder: two files that a move gave one name, and a call wrote, are shown in one order.
func TestFilesOfOneNameKeepTheirOrder(t *testing.T) {
	order := func() string {
		v := NewViews()
		for _, ops := range [][]fileop.Operation{
			{{Kind: fileop.Write, Path: "/r/a.go", New: "one\n"}},
			{{Kind: fileop.Write, Path: "a.go", New: "one\n"}},
			{{Kind: fileop.Write, Path: "/r/b.go", New: "two\n"}},
			{{Kind: fileop.Move, Path: "/r/b.go", To: "/r/a.go"}},
			{{Kind: fileop.Write, Path: "a.go", New: "three\n"}, {Kind: fileop.Write, Path: "/r/a.go", New: "four\n"}},
		} {
			v.Add(Call{Operations: ops})
		}
		all := ""
		for _, f := range v.newest() {
			all += f.name + ": " + f.regions[0].text() + "\n"
		}
		return all
	}
	first := order()
	if strings.Count(first, "/r/a.go: ") != 2 {
		t.Fatalf("there are no two files of one name: %s", first)
	}
	for range 50 {
		if again := order(); again != first {
			t.Fatalf("%s became %s", first, again)
		}
	}
}

// TestCosts holds calls on large files to testdata/costs.txt.
func TestCosts(t *testing.T) {
	const size = 20_000
	line := func(i int) string {
		return fmt.Sprintf("func handler%d(ctx context.Context) error { return step(ctx) }", i)
	}
	on := func(each func(i int) (fileop.Operation, string)) func(testing.TB) func() {
		return func(testing.TB) func() {
			v := NewViews()
			for from := 0; from < size; from += 5_000 {
				var body strings.Builder
				for i := range 5_000 {
					body.WriteString(line(from+i) + "\n")
				}
				v.Add(Call{Operations: []fileop.Operation{{Kind: fileop.Read, Path: "a.go", From: from + 1}}, Body: body.String()})
			}
			for i := range 2_000 { // of which the places are not known
				v.Add(Call{Operations: []fileop.Operation{{Kind: fileop.Replace, Path: "a.go", Old: fmt.Sprintf("gone %d", i), New: fmt.Sprintf("new %d", i)}}})
			}
			n := 0
			return func() {
				n++
				op, body := each(n * 7919 % size)
				op.Path = "a.go"
				v.Add(Call{Operations: []fileop.Operation{op}, Body: body})
			}
		}
	}
	costtest.Hold(t, "testdata/costs.txt",
		costtest.Operation{Name: "edit a file of 20,000 lines", Start: on(func(i int) (fileop.Operation, string) {
			return fileop.Operation{Kind: fileop.Replace, Old: fmt.Sprintf("handler%d(ctx ", i), New: fmt.Sprintf("handled%d(\n\tctx ", i)}, ""
		})},
		costtest.Operation{Name: "edit a file of 20,000 lines at a place that is not known", Start: on(func(i int) (fileop.Operation, string) {
			return fileop.Operation{Kind: fileop.Replace, Old: fmt.Sprintf("never there %d", i), New: fmt.Sprintf("new %d", i)}, ""
		})},
		costtest.Operation{Name: "read a line of a file of 20,000", Start: on(func(i int) (fileop.Operation, string) {
			return fileop.Operation{Kind: fileop.Read, From: i + 1}, line(i) + "\n"
		})},
		costtest.Operation{Name: "read a line of a file of 20,000 without its number", Start: on(func(i int) (fileop.Operation, string) {
			return fileop.Operation{Kind: fileop.Read}, line(i) + "\n"
		})},
	)
}
