package evaluate

import (
	"encoding/json"
	"strings"

	"github.com/contextd/contextd/internal/fileview"
	"github.com/contextd/contextd/internal/fileview/fileop"
	"github.com/contextd/contextd/internal/reduce"
)

// leastLine is the length, in bytes, of the shortest line that counts among those that an edit must reproduce.
const leastLine = 12

// mustReproduce returns the lines, trimmed and without duplicates, that the edits of a turn must reproduce
// exactly: texts to be replaced, and the context and removed lines of patches.
func mustReproduce(g *reduce.Group) []string {
	var out []string
	once := map[string]bool{}
	for _, c := range g.Calls {
		for _, text := range replaced(c.Name, c.Arguments) {
			for line := range strings.SplitSeq(text, "\n") {
				line = strings.TrimSpace(line)
				if len(line) >= leastLine && !once[line] {
					once[line] = true
					out = append(out, line)
				}
			}
		}
	}
	return out
}

// shows reports whether a text has a line, unchanged or with JSON escapes.
func shows(text, line string) bool {
	if strings.Contains(text, line) {
		return true
	}
	quoted, err := json.Marshal(line)
	if err != nil {
		return false
	}
	if inner := string(quoted[1 : len(quoted)-1]); inner != line && strings.Contains(text, inner) {
		return true
	}
	var plain strings.Builder
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(line) != nil {
		return false
	}
	inner := strings.Trim(plain.String(), "\n")
	inner = inner[1 : len(inner)-1]
	return inner != line && strings.Contains(text, inner)
}

// replaced returns the texts that a call must reproduce exactly: the texts to be replaced, and the context and
// removed lines of each hunk of a patch.
func replaced(tool, arguments string) []string {
	var out []string
	for _, op := range fileview.Operations(tool, arguments) {
		switch {
		case op.Kind == fileop.Replace, op.Kind == fileop.Substitute, op.Kind == fileop.Window:
			out = append(out, op.Old)
		case op.Kind == fileop.Splice:
			out = append(out, op.New) // which has the lines that stay
		case op.Kind == fileop.Write && (strings.HasSuffix(op.Path, ".patch") || strings.HasSuffix(op.Path, ".diff")):
			out = append(out, replaced("apply_patch", op.New)...) // a later call applies this file
		}
	}
	return out
}
