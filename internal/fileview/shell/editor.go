package shell

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// editor is the program with which SWE-agent's models view and edit files in a shell.
const editor = "str_replace_editor"

// edited returns what a command of the editor does. Its words are a task, a file, and flags with their values.
func edited(words []string) fileop.Operation {
	if len(words) < 3 {
		return fileop.Operation{}
	}
	members := map[string]json.RawMessage{}
	set := func(name string, value any) {
		text, err := json.Marshal(value)
		if err == nil {
			members[name] = text
		}
	}
	set("command", words[1])
	for rest := words[3:]; len(rest) > 0; {
		name, isFlag := strings.CutPrefix(rest[0], "--")
		rest = rest[1:]
		if !isFlag {
			continue
		}
		switch {
		case len(rest) == 0:
		case name == "view_range":
			var lines []int
			for len(rest) > 0 && number.MatchString(strings.TrimPrefix(rest[0], "-")) {
				n, _ := strconv.Atoi(rest[0]) // what is too long is 0
				lines = append(lines, n)
				rest = rest[1:]
			}
			set(name, lines)
		case name == "insert_line" && number.MatchString(rest[0]):
			n, _ := strconv.Atoi(rest[0]) // what is too long is 0
			set(name, n)
			rest = rest[1:]
		default:
			set(name, rest[0])
			rest = rest[1:]
		}
	}
	if !slices.Contains([]string{"view", "create", "str_replace", "insert"}, words[1]) {
		return fileop.Operation{}
	}
	if found := fileop.NewArguments(members).OnFile(editor, words[2]); len(found) == 1 {
		return found[0]
	}
	return fileop.Operation{}
}
