package fileop

import (
	"regexp"
	"strconv"
	"strings"
)

// windowed are the tools of SWE-agent, or the commands of its shell, that work on the file that is open. Each
// shows lines of it.
var windowed = map[string]bool{"open": true, "goto": true, "scroll_up": true, "scroll_down": true, "create": true, "set_cursors": true, "search_file": true}

// Windowed is what a command of SWE-agent's shell does; false if it is none.
func Windowed(words []string) (Operation, bool) {
	op := Operation{Kind: Window}
	switch {
	case len(words) > 1 && (words[0] == "open" || words[0] == "create"):
		op.Path = words[1]
	case len(words) > 2 && words[0] == "search_file":
		op.Path = words[2]
	}
	return op, windowed[words[0]]
}

// lineEdit is a command by which lines of the open file are replaced: those from one to another, or those that
// were marked.
var lineEdit = regexp.MustCompile(`^edit(?: +(\d{1,7}):(\d{1,7}))?[ \t]*\r?\n((?s:.*?\n)??)end_of_edit\s*$`)

// LineEdit is what a command does that SWE-agent's shell takes as an edit; false if it is none.
func LineEdit(script string) (Operation, bool) {
	m := lineEdit.FindStringSubmatch(script)
	if m == nil {
		return Operation{}, false
	}
	return splice(m[1], m[2], m[3]), true
}

// splice is an edit of the lines from one to another; empty numbers are not known.
func splice(from, to, text string) Operation {
	op := Operation{Kind: Splice, New: text}
	first, err := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	if err == nil && err2 == nil {
		op.From, op.Lines = max(first, 1), max(last-max(first, 1)+1, 0)
	}
	return op
}

// OnWindow are the operations of a call that names no file, or only opens one.
func (a Arguments) OnWindow(tool, path string) []Operation {
	switch {
	case path != "" && !windowed[tool]:
	case tool == "edit" && a.Has("startline", "endline") && a.Has("replacementtext"):
		return []Operation{splice(string(a["startline"]), string(a["endline"]), ended(a.Text("replacementtext")))}
	case tool == "edit" && a.Has("search"):
		op := a.replace("")
		op.Kind = Window
		return []Operation{op}
	case tool == "edit" && a.Has("text"):
		return []Operation{{Kind: Splice, New: ended(a.Text("text"))}}
	case tool == "insert" && a.Has("text"):
		op := Operation{Kind: Splice, New: ended(a.Text("text")), All: !a.Has("line")}
		if !op.All {
			op.From = a.Number("line") + 1
		}
		return []Operation{op}
	case windowed[tool] && !a.Has("filetext", "content"):
		return []Operation{{Kind: Window, Path: path}}
	}
	return nil
}

// ended is a text that ends with its last line, unless it is empty.
func ended(text string) string {
	if text == "" {
		return ""
	}
	return strings.TrimSuffix(text, "\n") + "\n"
}
