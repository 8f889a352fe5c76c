package main

import (
	"slices"
	"testing"

	"github.com/contextd/contextd/internal/reduce"
)

func TestLinesThatEditsMustReproduce(t *testing.T) {
	got := mustReproduce(&reduce.Group{Calls: []reduce.Call{
		{Name: "Read", Arguments: `{"file_path":"a.go"}`},
		{Name: "Edit", Arguments: `{"file_path":"a.go","old_string":"\tfirst := line()\nshort\n\tsecond := line()","new_string":"\tnever := asked()"}`},
		{Name: "apply_patch", Arguments: `{"input":"*** Begin Patch\n*** Update File: a.go\n@@\n \tsecond := line()\n-\tthird := line()\n+\tnever := asked()\n*** End Patch"}`},
		{Name: "Write", Arguments: `{"file_path":"b.go","content":"\tnever := asked()"}`},
	}})
	if want := []string{"first := line()", "second := line()", "third := line()"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestShows(t *testing.T) {
	const line = `if a < "b" && c {`
	for text, want := range map[string]bool{
		"x\n\t" + line + "\n":                          true,
		`{"old":"\tif a < \"b\" && c {\n"}`:            true,
		`{"old":"if a \u003c \"b\" \u0026\u0026 c {"}`: true,
		`if a < "b" && d {`:                            false,
	} {
		if shows(text, line) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}
