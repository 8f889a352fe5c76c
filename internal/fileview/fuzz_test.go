package fileview

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/fileview/fileop"
	"github.com/contextd/contextd/internal/fileview/program"
	"github.com/contextd/contextd/internal/fileview/shell"
)

// seeds are the arguments of the calls in the scripts of a folder, with their results if they have any.
func seeds(f *testing.F, folder string) (arguments, bodies []string) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*"))
	if err != nil || len(files) == 0 {
		f.Fatal("no scripts:", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for part := range strings.SplitSeq(string(data), "\n\ncall ") {
			input, _, _ := strings.Cut(part, "\n----")
			_, input, _ = strings.Cut(input, "\n")
			call, body, _ := strings.Cut(input, "\n--\n")
			arguments, bodies = append(arguments, call), append(bodies, body)
		}
	}
	return arguments, bodies
}

// FuzzScripts: whatever a script is, each of its operations names a file, unless its kind needs none.
func FuzzScripts(f *testing.F) {
	arguments, _ := seeds(f, "operations")
	for _, text := range arguments {
		var members map[string]any
		if json.Unmarshal([]byte(text), &members) != nil {
			continue
		}
		for _, name := range []string{"command", "cmd", "input"} {
			if script, ok := members[name].(string); ok {
				f.Add(script)
			}
		}
	}
	f.Fuzz(func(t *testing.T, script string) {
		for _, ops := range [][]fileop.Operation{toolCalls(script), shell.Commands("bash", script, "/w"), shell.Commands("powershell", script, "/w"), program.Python(script), program.JavaScript(script)} {
			for _, op := range ops {
				if op.Path == "" && !nameless(op) || op.Kind == 0 || op.From < 0 || op.Lines < 0 {
					t.Errorf("%q: %+v", script, op)
				}
			}
		}
	})
}

// FuzzViews: whatever calls do, regions do not overlap, and the count of known lines is right.
func FuzzViews(f *testing.F) {
	for _, folder := range []string{"views", "operations"} {
		arguments, bodies := seeds(f, folder)
		for i := range arguments {
			f.Add("bash", arguments[i], bodies[i], arguments[(i+1)%len(arguments)])
			f.Add("exec", arguments[i], arguments[i], "one\n---\ntwo\n")
		}
	}
	f.Fuzz(func(t *testing.T, tool, first, body, second string) {
		v := NewViews()
		v.Add(Call{Operations: Operations("Write", `{"file_path":"/r/src/a.go","content":"one\ntwo\nthree\n"}`)})
		v.Add(Call{Operations: Operations(tool, first), Body: body, Pointer: "ctx:1.0"})
		v.Add(Call{Operations: Operations("bash", `{"command":"cat src/a.go"}`), Body: body})
		v.Add(Call{Operations: Operations(tool, second), Body: body})
		v.Add(Call{Operations: Operations(tool, first), Body: second})
		sum := 0
		for _, f := range v.newest() {
			sum += f.size()
			for i, r := range f.regions {
				if len(r.lines) == 0 && f.name == "" || i > 0 && r.from > 0 && r.from < f.regions[i-1].end() {
					t.Errorf("%q: region %d begins at %d", f.name, i, r.from)
				}
			}
		}
		if sum != v.lines {
			t.Errorf("counted %d lines of %d", v.lines, sum)
		}
	})
}
