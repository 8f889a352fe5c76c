package evaluate

import (
	"encoding/json"
	"slices"
	"strings"
)

// oldNames are the names of arguments that hold what a tool has to replace, in small letters
// without separators: those of Claude Code, Gemini CLI, OpenCode, OpenHands and pi.
var oldNames = []string{"oldstring", "oldstr", "oldtext"}

// replaced are the texts that a call has to reproduce to the letter: what a tool has to replace,
// and for each place of a patch its context and removed lines.
func replaced(arguments string) []string {
	var value any
	if json.Unmarshal([]byte(arguments), &value) != nil {
		value = arguments
	}
	var out []string
	walkTexts("", value, func(name, text string) {
		if slices.Contains(oldNames, strings.ToLower(strings.ReplaceAll(name, "_", ""))) {
			out = append(out, text)
		} else {
			out = append(out, patched(text)...)
		}
	})
	return out
}

// walkTexts visits the texts of a JSON value with the name of the member that each is in.
func walkTexts(name string, value any, visit func(name, text string)) {
	switch v := value.(type) {
	case string:
		visit(name, v)
	case []any:
		for _, item := range v {
			walkTexts(name, item, visit)
		}
	case map[string]any:
		for member, item := range v {
			walkTexts(member, item, visit)
		}
	}
}

// patched are the context and removed lines of a patch, one text for each: of the form that
// begins *** Begin Patch, of diff -u, and of the SEARCH and REPLACE blocks of Cline and Roo
// Code. There are none where the text is no patch.
func patched(text string) []string {
	const (
		outside = iota
		header
		hunk
		searched
	)
	var out []string
	at := outside
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		switch {
		case line == "*** End Patch", strings.HasPrefix(line, "*** Add File: "), strings.HasPrefix(line, "*** Delete File: "):
			at = outside
		case strings.HasPrefix(line, "*** Update File: "):
			at = hunk // its first place may have no line of its own
		case strings.HasPrefix(line, "+++ "):
			at = header
		case strings.HasPrefix(line, "@@"):
			if at == header {
				at = hunk
			}
		case strings.HasPrefix(line, "--- a/"):
			at = outside // another file
		case line == "------- SEARCH", line == "<<<<<<< SEARCH":
			at = searched
		case at == searched && line == "=======":
			at = outside
		case at == searched && !strings.HasPrefix(line, ":start_line:") && !strings.HasPrefix(line, ":end_line:"):
			out = append(out, line)
		case at == hunk && (strings.HasPrefix(line, " ") || strings.HasPrefix(line, "-")):
			out = append(out, line[1:])
		}
	}
	return out
}
