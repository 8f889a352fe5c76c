package fileview

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// TestOperations runs the scripts of testdata/operations: a tool's name and the arguments of
// a call, and what it does to files.
func TestOperations(t *testing.T) {
	datadriven.Walk(t, filepath.Join("testdata", "operations"), func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(_ *testing.T, d *datadriven.TestData) string {
			return describe(Operations(d.CmdArgs[0].Key, d.Input))
		})
	})
}

func describe(ops []fileop.Operation) string {
	var out strings.Builder
	for _, op := range ops {
		kind := [...]string{fileop.Read: "read", fileop.Write: "write", fileop.Replace: "replace", fileop.Insert: "insert", fileop.Change: "change", fileop.Search: "search", fileop.Append: "append", fileop.Remove: "remove", fileop.Move: "move", fileop.Copy: "copy", fileop.Print: "print", fileop.Substitute: "substitute", fileop.Run: "run", fileop.Window: "window", fileop.Splice: "splice"}[op.Kind]
		fmt.Fprintf(&out, "%s %s from=%d all=%t", kind, op.Path, op.From, op.All)
		if op.Lines > 0 {
			fmt.Fprintf(&out, " lines=%d", op.Lines)
		}
		if op.Dir != "" {
			fmt.Fprintf(&out, " in=%s", op.Dir)
		}
		if op.ByLine {
			out.WriteString(" by line")
		}
		if op.To != "" {
			fmt.Fprintf(&out, " to=%s", op.To)
		}
		out.WriteByte('\n')
		if op.Old != "" {
			fmt.Fprintf(&out, "  old %q\n", op.Old)
		}
		if op.New != "" {
			fmt.Fprintf(&out, "  new %q\n", op.New)
		}
	}
	if out.Len() == 0 {
		return "nothing\n"
	}
	return out.String()
}

// TestOperationsOfNamesThatAreAlike: the same call always has the same operations.
func TestOperationsOfNamesThatAreAlike(t *testing.T) {
	const arguments = `{"path":"a.go","old_string":"one","oldString":"two","OLD-STRING":"three","new_string":"x"}`
	want := describe(Operations("edit", arguments))
	for range 100 {
		if got := describe(Operations("edit", arguments)); got != want {
			t.Fatalf("%s, then %s", want, got)
		}
	}
}

// TestOperationsAreBounded: a command that changes many files in many ways has about as many operations as words.
func TestOperationsAreBounded(t *testing.T) {
	for _, n := range []int{20, 400} {
		command := "sed -i" + strings.Repeat(" -e s/a/b/", n) + strings.Repeat(" a.go", n)
		got := Operations("bash", `{"command":"`+command+`"}`)
		want, kind := n*n, fileop.Substitute
		if n > 20 {
			want, kind = n, fileop.Change
		}
		if len(got) != want || got[0].Kind != kind {
			t.Errorf("%d scripts for %d files: %d operations, the first of kind %d", n, n, len(got), got[0].Kind)
		}
	}
}

// nameless reports whether the kind of an operation needs no name of a file.
func nameless(op fileop.Operation) bool {
	return op.Kind == fileop.Search || op.Kind == fileop.Print || op.Kind == fileop.Window || op.Kind == fileop.Splice
}

func FuzzOperations(f *testing.F) {
	calls, _ := seeds(f, "operations")
	for _, arguments := range calls {
		f.Add("edit", arguments)
		f.Add("Read", arguments)
	}
	f.Fuzz(func(t *testing.T, tool, arguments string) {
		for _, op := range Operations(tool, arguments) {
			if op.Path == "" && !nameless(op) || op.Kind == 0 || op.From < 0 {
				t.Errorf("%q %q: %+v", tool, arguments, op)
			}
		}
	})
}
