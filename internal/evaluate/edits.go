package evaluate

import (
	"encoding/json"
	"strings"

	"github.com/contextd/contextd/internal/reduce"
)

// leastLine is the length in bytes below which a line is none that an edit must reproduce.
const leastLine = 12

// mustReproduce are the lines, without the blanks around them, that the calls of a turn must
// reproduce to the letter: what a tool has to replace, context and removed lines of a
// patch. Each line once.
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

// shows reports whether a text holds a line, or the line as JSON has it.
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
