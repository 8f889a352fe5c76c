package fileview

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/fileview/fileop"
)

// TestViews runs the scripts of testdata/views: calls with their arguments and, after a line
// of dashes, their results; and what is shown of the files after them.
func TestViews(t *testing.T) {
	gauge := budget.NewGauge(budget.Heuristic{})
	datadriven.Walk(t, filepath.Join("testdata", "views"), func(t *testing.T, path string) {
		views := NewViews()
		var ages Ages = func(string) int { return -1 }
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "call":
				arguments, body, _ := strings.Cut(d.Input, "\n--\n")
				views.Add(Call{
					Operations: Operations(d.CmdArgs[0].Key, arguments), Body: body, Failed: d.HasArg("failed"),
					Pointer: fmt.Sprintf("ctx:%d.0", views.now()+1),
				})
				return ""
			case "show":
				limit := uint64(1000)
				d.MaybeScanArgs(t, "limit", &limit)
				pieces := views.Write(limit, gauge, ages)
				if got := gauge.Sum(pieces...).Tokens(); got > limit {
					t.Errorf("%s: %d tokens of %d", d.Pos, got, limit)
				}
				return budget.Join(pieces)
			}
			d.Fatalf(t, "no such command: %s", d.Cmd)
			return ""
		})
	})
}

// TestViewsAreBounded: memory is bounded, however many files calls name and however much they show.
func TestViewsAreBounded(t *testing.T) {
	v := NewViews()
	for i := range 40 {
		var found strings.Builder
		for n := range 2000 {
			fmt.Fprintf(&found, "dir%d/%d/name.go:%d:a line that was found\n", i, n, n+1)
		}
		v.Add(Call{Operations: Operations("Grep", `{"pattern":"found"}`), Body: found.String()})
		v.Add(Call{Operations: Operations("Read", fmt.Sprintf(`{"file_path":"/r/%d.go"}`, i)), Body: strings.Repeat("a line of a file\n", 9000)})
		if len(v.files) > mostNames+100 || v.lines > mostLines+mostShown {
			t.Fatalf("after %d rounds %d names and %d lines", i, len(v.files), v.lines)
		}
	}
	sum := 0
	for _, f := range v.newest() {
		sum += f.size()
	}
	if sum != v.lines {
		t.Errorf("counted %d lines of %d", v.lines, sum)
	}
}

// TestEditsAreBounded: a script with many edits of a large file takes bounded time; edits beyond that count
// as unknown changes.
func TestEditsAreBounded(t *testing.T) {
	v := NewViews()
	v.Add(Call{Operations: []fileop.Operation{{Kind: fileop.Write, Path: "a.go", New: strings.Repeat(strings.Repeat("a line of a file\n", 150)+"one\n", 60)}}})
	v.Add(Call{Operations: slices.Repeat([]fileop.Operation{{Kind: fileop.Substitute, Path: "a.go", Old: "one", New: "one", All: true}}, 400)})
	if f := v.known("", "a.go"); len(f.missed) == 0 || v.laid > mostLaid+1<<20 {
		t.Errorf("laid over %d bytes, and not followed: %v", v.laid, f.missed)
	}
	var window strings.Builder
	for n := range 20_000 {
		fmt.Fprintf(&window, "%d:one\n", n+1)
	}
	v.Add(Call{Operations: []fileop.Operation{{Kind: fileop.Window, Path: "b.go", Old: "two", New: strings.Repeat("one\n", 10_000)}}, Body: "[File: /b.go (20000 lines total)]\n" + window.String()})
	if f := v.known("", "/b.go"); len(f.missed) == 0 || v.laid < mostLaid || v.laid > mostLaid+1<<20 {
		t.Errorf("%d bytes of a window were searched, and not followed: %v", v.laid, f.missed)
	}
}

// TestSmallEditsAreBounded: many small calls that each change all of a file take bounded memory, and those beyond that
// count as unknown changes until a call shows enough of the file.
func TestSmallEditsAreBounded(t *testing.T) {
	v := NewViews()
	text := strings.Repeat("ab", 100<<10)
	write := Call{Operations: []fileop.Operation{{Kind: fileop.Write, Path: "a.go", New: text}}}
	v.Add(write)
	f := v.known("", "a.go")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range 300 {
		old := []string{"a", "c"}[i%2]
		v.Add(Call{Operations: []fileop.Operation{{Kind: fileop.Replace, Path: "a.go", Old: old, New: "ca"[i%2 : i%2+1], All: true}}})
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 4*mostWork || len(f.missed) == 0 {
		t.Errorf("%d bytes, and not followed: %v", took, f.missed)
	}
	for range 2*mostWork/workOf/len(text) + 1 {
		v.Add(write)
	}
	v.Add(Call{Operations: []fileop.Operation{{Kind: fileop.Replace, Path: "a.go", Old: "abab", New: "one", All: true}}})
	if !strings.HasPrefix(f.regions[0].text(), "oneone") {
		t.Errorf("an edit after these is not followed: %.20q", f.regions[0].text())
	}
}

// TestLongTextsAreChanges: of a call whose arguments or result are too long it is known which file it changed.
func TestLongTextsAreChanges(t *testing.T) {
	long := strings.Repeat("a line that is too long for a view\n", mostBytes/32)
	for _, c := range []Call{
		{Operations: Operations("Write", fmt.Sprintf(`{"file_path":"/r/a.go","content":%q}`, long))},
		{Operations: Operations("bash", `{"command":"sed -i 's/.*/x/' /r/a.go; cat /r/b.go"}`), Body: long},
	} {
		v := NewViews()
		v.Add(Call{Operations: Operations("Write", `{"file_path":"/r/a.go","content":"package a\n"}`)})
		v.Add(c)
		if f := v.known("", "/r/a.go"); len(f.missed) != 1 {
			t.Errorf("%+v: the change is not known: %v", c.Operations, f.missed)
		}
	}
}

// TestViewsFollowFiles: the known lines of a file whose changes the agent saw are those of the file, at the
// same places.
func TestViewsFollowFiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		file := []string{"first"}
		for i := range rapid.IntRange(0, 60).Draw(t, "lines") {
			file = append(file, fmt.Sprintf("line %d of the file", i))
		}
		v := NewViews()
		read := func(from, to int) {
			var body strings.Builder
			for i, l := range file[from:to] {
				fmt.Fprintf(&body, "%6d\t%s\n", from+i+1, l)
			}
			v.Add(Call{Operations: Operations("Read", fmt.Sprintf(`{"file_path":"/r/a.go","offset":%d,"limit":%d}`, from+1, to-from)), Body: body.String()})
		}
		v.Add(Call{Operations: Operations("bash", `{"command":"cat /r/a.go"}`), Body: strings.Join(file, "\n") + "\n"})
		for i := range rapid.IntRange(0, 20).Draw(t, "calls") {
			from := rapid.IntRange(0, len(file)-1).Draw(t, "from")
			to := rapid.IntRange(from+1, len(file)).Draw(t, "to")
			put := make([]string, rapid.IntRange(1, 5).Draw(t, "put"))
			for n := range put {
				put[n] = fmt.Sprintf("put %d %d", i, n)
			}
			switch rapid.IntRange(0, 8).Draw(t, "what") {
			case 0:
				read(from, to)
			case 1:
				v.Add(Call{Operations: Operations("edit", fmt.Sprintf(`{"path":"a.go","old_str":%q,"new_str":%q}`,
					strings.Join(file[from:to], "\n"), strings.Join(put, "\n")))})
				file = slices.Concat(file[:from:from], put, file[to:])
			case 2:
				v.Add(Call{Operations: Operations("edit", fmt.Sprintf(`{"command":"insert","path":"./a.go","insert_line":%d,"new_str":%q}`,
					from+1, strings.Join(put, "\n")))})
				file = slices.Concat(file[:from+1:from+1], put, file[from+1:])
			case 3:
				file = append(file, put...)
				arguments, _ := json.Marshal(map[string]string{"command": "cd /r && cat >> a.go <<'EOF'\n" + strings.Join(put, "\n") + "\nEOF"})
				v.Add(Call{Operations: Operations("bash", string(arguments))})
			case 4:
				v.Add(Call{Operations: Operations("bash", fmt.Sprintf(`{"command":"tail -n %d a.go"}`, len(file)-from)), Body: strings.Join(file[from:], "\n") + "\n"})
			case 5:
				v.Add(Call{
					Operations: Operations("bash", fmt.Sprintf(`{"command":"head -n %d a.go; sed -n '%d,%dp' a.go"}`, from+1, from+1, to)),
					Body:       strings.Join(slices.Concat(file[:from+1], file[from:to]), "\n") + "\n",
				})
			case 6:
				v.Add(Call{
					Operations: Operations("bash", fmt.Sprintf(`{"command":"sed -n '%d,9999p' a.go; printf '\\n-- all --\\n'; cat a.go"}`, from+1)),
					Body:       strings.Join(slices.Concat(file[from:], []string{"", "-- all --"}, file), "\n") + "\n",
				})
			case 7:
				script := fmt.Sprintf("p = 'a.go'\ns = open(p).read()\ns = s.replace(%q, %q)\nopen(p, 'w').write(s)\n",
					strings.Join(file[from:to], "\n")+"\n", strings.Join(put, "\n")+"\n")
				arguments, _ := json.Marshal(map[string]string{"command": "cd /r && python3 - <<'EOF'\n" + script + "EOF"})
				v.Add(Call{Operations: Operations("bash", string(arguments))})
				file = slices.Concat(file[:from:from], put, file[to:])
			case 8:
				v.Add(Call{Operations: Operations("bash", fmt.Sprintf(`{"command":"sed -i 's/%s/%s/' /r/a.go"}`, file[from], put[0]))})
				file[from] = put[0]
			}
		}
		var known []string
		for _, r := range v.files["/r/a.go"].regions {
			if r.from != len(known)+1 {
				t.Fatalf("a region begins at line %d after %d lines", r.from, len(known))
			}
			for _, l := range r.lines {
				known = append(known, l.text)
			}
		}
		if !slices.Equal(known, file) {
			t.Fatalf("known:\n%q\nthe file:\n%q", known, file)
		}
		if v.lines != len(file) {
			t.Fatalf("counted %d lines of %d", v.lines, len(file))
		}
	})
}
