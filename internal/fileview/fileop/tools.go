package fileop

import (
	"slices"
	"strings"
	"unicode"
)

// verbs are the words in a tool's name, and in the arguments that choose one of its tasks: in lower case, each
// between blanks.
type verbs string

func (a Arguments) verbs(tool string) verbs {
	out := make([]byte, 1, len(tool)+16)
	out[0] = ' '
	small := false
	for _, r := range tool {
		switch {
		case r == '_' || r == '-' || r == '.' || r == ':' || r == '/' || r == ' ':
			out = append(out, ' ')
		case unicode.IsUpper(r) && small:
			out = append(out, ' ', byte(unicode.ToLower(r)))
		case r < unicode.MaxASCII:
			out = append(out, byte(unicode.ToLower(r)))
		}
		small = unicode.IsLower(r)
	}
	for _, name := range []string{"command", "action", "operation"} {
		if word := a.word(name); word != "" {
			out = append(out, ' ')
			for _, part := range strings.Split(word, "_") {
				out = append(append(out, part...), ' ')
			}
		}
	}
	return verbs(append(out, ' '))
}

// has reports whether one of the words is among the verbs.
func (v verbs) has(words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(string(v), " "+word+" ") })
}

// contains reports whether one of the texts is a part of a verb.
func (v verbs) contains(texts ...string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(string(v), text) })
}

// reads reports whether the result is the text of a file or of lines of it, and not something derived, such as
// an outline.
func (v verbs) reads() bool {
	switch {
	case v.contains("image", "outline", "symbol", "director", "folder", "notebook", "diff", "metadata", "terminal", "definition", "summary", "history"):
		return false
	case v.has("read", "view", "cat"):
		return true
	case v.has("open"):
		return !v.has("in")
	}
	return v.has("file") && v.has("get", "fetch", "show", "load") && v.has("text", "content", "contents", "lines")
}

// writing are parts of verbs of tools that change a file by a given text.
var writing = []string{"write", "edit", "insert", "append", "replace", "create", "modify"}

// changes reports whether a tool changes the file that it is given.
func (v verbs) changes() bool {
	if v.contains("director", "folder") || v.has("open") {
		return false
	}
	return v.contains(writing...) || v.has(
		"undo", "revert", "restore", "format", "reformat", "rename", "refactor", "update", "patch", "apply", "prepend", "delete", "remove", "organize", "save", "put", "fix",
	)
}

// stores reports whether a tool writes a given text into a file.
func (v verbs) stores() bool {
	return v.changes() || v.has("new", "add", "store", "make", "set", "generate", "overwrite")
}

// removes reports whether a tool deletes files, rather than parts of their texts.
func (v verbs) removes() bool {
	return v.has("delete", "remove", "trash") && (v.has("file", "files", "path", "paths") || v.contains("director", "folder")) &&
		!v.has("line", "lines", "from", "in", "symbol", "content", "text", "block")
}
