package fileview

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// TestWhatOneFileTakesIsBounded: the memory of one file does not grow with the calls that work on it.
func TestWhatOneFileTakesIsBounded(t *testing.T) {
	const calls = 3 * mostRegions
	text := func(i int) string { return fmt.Sprintf("line %d of a file\n", i) }
	for name, call := range map[string]func(i int) Call{
		"edits at unknown places": func(i int) Call {
			return Call{Operations: []fileop.Operation{{Kind: fileop.Replace, Path: "a.go", Old: fmt.Sprintf("gone %d", i), New: text(i)}}}
		},
		"lines put after unknown ones": func(i int) Call {
			return Call{Operations: []fileop.Operation{{Kind: fileop.Insert, Path: "a.go", From: 7 * i, New: text(i)}}}
		},
		"reads of unknown places": func(i int) Call {
			return Call{Operations: []fileop.Operation{{Kind: fileop.Read, Path: "a.go"}}, Body: text(i) + text(i)}
		},
		"reads of every third line": func(i int) Call {
			return Call{Operations: []fileop.Operation{{Kind: fileop.Read, Path: "a.go", From: 3*i + 1}}, Body: text(i)}
		},
		"long reads that follow each other": func(i int) Call {
			return Call{Operations: []fileop.Operation{{Kind: fileop.Read, Path: "a.go", From: 100*i + 1}}, Body: strings.Repeat(text(i), 100)}
		},
		"names of one file": func(i int) Call {
			return Call{Operations: []fileop.Operation{{Kind: fileop.Read, Path: strings.Repeat("d/", i) + "a.go", From: i + 1}}, Body: text(i)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := NewViews()
			for i := range calls {
				v.Add(call(i))
				f := v.known("", "a.go")
				if len(f.regions) > mostRegions || len(f.missed) > mostRegions || f.size() != v.lines || v.lines > mostLines || len(v.files) > mostNames {
					t.Fatalf("after call %d, %d regions, %d calls that are missed, %d lines counted as %d, and %d names", i, len(f.regions), len(f.missed), f.size(), v.lines, len(v.files))
				}
				if !slices.ContainsFunc(f.regions, func(r region) bool { return r.newest() == v.now() }) {
					t.Fatalf("what call %d showed is gone", i)
				}
			}
		})
	}
}

// TestTheNewestLinesStay: if a file has too many lines, those around the newest one are kept, with their
// line numbers.
func TestTheNewestLinesStay(t *testing.T) {
	const each = 10_000
	v := NewViews()
	for from := 1; from <= 2*mostLines; from += each {
		var body strings.Builder
		for i := range each {
			fmt.Fprintf(&body, "line %d\n", from+i)
		}
		v.Add(Call{Operations: []fileop.Operation{{Kind: fileop.Read, Path: "a.go", From: from}}, Body: body.String()})
		for _, r := range v.known("", "a.go").regions {
			for i := range r.lines {
				if want := fmt.Sprintf("line %d", r.from+i); r.lines[i].text != want {
					t.Fatalf("%q is at the place of %q", r.lines[i].text, want)
				}
			}
		}
		v.Add(Call{Operations: []fileop.Operation{{Kind: fileop.Replace, Path: "a.go", Old: fmt.Sprintf("line %d\n", from), New: fmt.Sprintf("line %d\n", from)}}})
	}
	if lines := v.known("", "a.go").size(); lines < mostLines/4 {
		t.Errorf("%d lines are left", lines)
	}
}
