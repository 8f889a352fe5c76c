package fileop

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Arguments are a call's, by their names in small letters without separators.
type Arguments map[string]json.RawMessage

// separators are what names of arguments have between their words.
var separators = strings.NewReplacer("_", "", "-", "")

// NewArguments has, of names that are alike, the last in the order of bytes.
func NewArguments(members map[string]json.RawMessage) Arguments {
	out := make(Arguments, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		out[strings.ToLower(separators.Replace(name))] = members[name]
	}
	return out
}

// decode reports whether there is an argument that a variable takes. An error of JSON allocates, and
// most calls have few of the arguments that are asked for.
func (a Arguments) decode(name string, v any) bool {
	raw, ok := a[name]
	return ok && json.Unmarshal(raw, v) == nil
}

// Text is the first of these arguments that is a text, or the last of texts.
func (a Arguments) Text(names ...string) string {
	for _, name := range names {
		var one string
		if a.decode(name, &one) && one != "" {
			return one
		}
		var words []string
		if a.decode(name, &words) && len(words) > 0 {
			return words[len(words)-1] // of a shell's arguments, the script is the last
		}
	}
	return ""
}

// Path is that of the one file that a call names.
func (a Arguments) Path() string {
	return a.Text("path", "filepath", "file", "filename", "absolutepath", "notebookpath", "targetfile", "relativepath", "pathinproject")
}

// Folder is the folder in which a call runs, as it says; empty if it does not.
func (a Arguments) Folder() string { return a.Text("workdir", "cwd", "workingdirectory", "workingdir") }

// Has reports whether a call has one of these arguments.
func (a Arguments) Has(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return a[name] != nil })
}

// number is the first of these arguments that is a number, or 0.
func (a Arguments) number(names ...string) int {
	for _, name := range names {
		var n float64
		if a.decode(name, &n) && n > 0 && n < 1<<31 {
			return int(n)
		}
	}
	return 0
}

// The names of the arguments of tools that edit, and of those that write.
var (
	oldNames     = []string{"oldstring", "oldstr", "oldtext", "search", "old", "targetcontent"}
	newNames     = []string{"newstring", "newstr", "newtext", "replace", "new", "replacementcontent"}
	contentNames = []string{"content", "contents", "codecontent"}
)

// OnFile are the operations of a call that names one file.
func (a Arguments) OnFile(tool, path string) []Operation {
	command := a.Text("command")
	switch {
	case command == "insert" || a.Has("insertline"):
		text := a.Text(slices.Concat(newNames, []string{"inserttext"})...)
		if strings.HasSuffix(text, "\n") {
			text += "\n" // the editor takes what follows the last line feed for a line
		}
		return []Operation{{Kind: Insert, Path: path, From: a.number("insertline"), New: text}}
	case command == "create" || a.Has("filetext"):
		return []Operation{{Kind: Write, Path: path, New: a.Text("filetext", "content")}}
	case command == "append":
		return []Operation{{Kind: Append, Path: path, New: a.Text(newNames...)}}
	case a.Has("diff"):
		return onePatch(path, a.Text("diff"))
	case command == "view" || command == "str_replace" && a.Text(oldNames...) == "":
		return []Operation{{Kind: Read, Path: path, From: a.firstOf("viewrange"), All: !a.Has("viewrange")}}
	case a.Has(oldNames...):
		return []Operation{a.replace(path)}
	case a.Has(listNames...):
		return a.Listed(path)
	case a.Has(contentNames...) && !a.Has("pattern"), a.Has("text") && writes(tool):
		return []Operation{a.write(tool, path)}
	case reads(tool):
		return []Operation{a.read(tool, path)}
	case deletes(tool):
		return []Operation{{Kind: Remove, Path: path}}
	case writes(tool) || command == "undo_edit":
		return []Operation{{Kind: Change, Path: path}}
	}
	return nil
}

// selected is a path that says what is read of the file, as Oh My Pi has it: a.go:41-43.
var selected = regexp.MustCompile(`^(.*[^:/\\]):(?:(\d{1,7})(?:[-+]\d{0,7})?|raw)$`)

// read is what a call does that shows a file, or lines of it.
func (a Arguments) read(tool, path string) Operation {
	var all bool
	a.decode("shouldreadentirefile", &all)
	op := Operation{Kind: Read, Path: path, From: 1, All: true}
	if m := selected.FindStringSubmatch(path); m != nil {
		op.Path = m[1]
		if n, err := strconv.Atoi(m[2]); err == nil {
			op.From, op.All = max(n, 1), false
			return op
		}
	}
	switch {
	case all:
	case a.Has("tail") || tool == "open": // a window, which says where it is
		op.From, op.All = 0, false
	default:
		op.From = max(a.number("offset", "startline", "start", "linestart", "lineoffset", "startlineoneindexed"), a.firstOf("viewrange"), a.firstOf("readrange"))
		op.All = op.From == 1 && !a.Has("limit", "endline", "end", "lineend", "endlineoneindexedinclusive", "nlines", "head", "viewrange", "readrange")
	}
	return op
}

// onePatch are the operations of a patch that is given for one file, whatever it calls that.
func onePatch(path, text string) []Operation {
	if found := SearchReplace(path, text); len(found) > 0 {
		return found
	}
	found := Patches("\n" + text)
	for i := range found {
		found[i].Path = path
	}
	return found
}

// listNames are the names of the arguments that list replacements.
var listNames = []string{"edits", "edit", "replacements", "changes", "replacementchunks"}

// Listed are the replacements that a call lists, of a file, or of that which each of them names.
func (a Arguments) Listed(path string) []Operation {
	var out []Operation
	for _, name := range listNames {
		var all []map[string]json.RawMessage
		if json.Unmarshal(a[name], &all) != nil {
			var one map[string]json.RawMessage
			_ = json.Unmarshal(a[name], &one) // what is in another form is no edit that is known
			all = append(all, one)
		}
		for _, members := range all {
			edit := NewArguments(members)
			if file := cmp.Or(edit.Path(), path); file != "" && edit.Has(oldNames...) {
				out = append(out, edit.replace(file))
			}
		}
	}
	return out
}

// write is what a call does that gives a text for a file: all of it, what comes at its end, what
// comes before a line, or what takes the place of lines.
func (a Arguments) write(tool, path string) Operation {
	op := Operation{Kind: Write, Path: path, New: a.Text(slices.Concat(contentNames, []string{"text"})...)}
	line := a.number("line")
	switch {
	case a.Has("start", "end"):
		return Operation{Kind: Change, Path: path}
	case a.Text("mode") == "append" || string(a["append"]) == "true" || a.Has("line") && line == 0 || strings.Contains(strings.ToLower(tool), "append"):
		op.Kind = Append
	case line > 0:
		op.Kind, op.From = Insert, line-1
	}
	return op
}

func (a Arguments) firstOf(name string) int {
	var numbers []int
	if a.decode(name, &numbers) && len(numbers) > 0 {
		return max(numbers[0], 1)
	}
	return 1
}

func (a Arguments) replace(path string) Operation {
	var all bool
	for _, name := range []string{"replaceall", "changeall", "allowmultiple"} {
		a.decode(name, &all)
	}
	return Operation{Kind: Replace, Path: path, Old: a.Text(oldNames...), New: a.Text(newNames...), All: all}
}

// reads reports whether a tool's name says that its result is the text of a file.
func reads(tool string) bool {
	name := strings.ToLower(tool)
	if at := strings.LastIndex(name, "__"); at >= 0 {
		name = name[at+2:]
	}
	if strings.Contains(name, "image") {
		return false
	}
	return strings.HasPrefix(name, "read") || strings.HasPrefix(name, "view") || strings.HasPrefix(name, "open") || name == "cat"
}

// writes reports whether a tool's name says that it changes a file.
func writes(tool string) bool {
	name := strings.ToLower(tool)
	return !strings.Contains(name, "directory") && !strings.Contains(name, "folder") && slices.ContainsFunc(
		[]string{"write", "edit", "insert", "append", "replace", "create", "modify"}, func(word string) bool { return strings.Contains(name, word) })
}

// deletes reports whether a tool's name says that it deletes a file.
func deletes(tool string) bool {
	name := strings.ToLower(tool)
	return strings.Contains(name, "file") && (strings.Contains(name, "delete") || strings.Contains(name, "remove"))
}
