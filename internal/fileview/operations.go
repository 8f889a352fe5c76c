package fileview

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Kind says what an operation does to a file.
type Kind uint8

// The kinds of operation.
const (
	Read       Kind = iota + 1
	Write           // New is the whole file
	Replace         // Old becomes New
	Insert          // New comes after line From
	Change          // in a way that is not known; with All, of what is in a folder, too
	Search          // the result shows lines that were found, of Path or of any file
	Append          // New comes at the end
	Remove          // with All, of what is in a folder, too
	Move            // Path is To from then on
	Copy            // To is as Path
	Print           // the result shows New, which is of no file; if New is empty, what is not known
	Substitute      // Old becomes New where it is; nothing says that it is
	Run             // does what the script in it says; with All, nothing says that it does
)

// Operation is what a call does to a file, by its arguments.
type Operation struct {
	Kind Kind
	Path string
	To   string
	// From is the first line of what is read, counted from 1, or the line after which
	// something is inserted; 0 is not known.
	From int
	// Lines is how many lines of the file are shown at the most; 0 is any number.
	Lines int
	// Old is what must be in the file to the letter, and New what is there after.
	Old, New string
	// All is set where every place of Old is replaced, or the whole file is read.
	All bool
	// ByLine is set where the first place of each line is replaced.
	ByLine bool
}

// Operations are what a call does to files, in order; none where it does nothing that can be
// read off its arguments. Tools are known by the names of their arguments, which harnesses
// choose alike, and patches and shell commands by their form.
func Operations(tool, arguments string) []Operation {
	if len(arguments) > mostBytes {
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &members) != nil {
		return given(tool, "input", arguments)
	}
	a := newArguments(members)
	if searches(tool) && a.has("pattern", "query", "regex") {
		return []Operation{{Kind: Search, Path: a.searched()}}
	}
	path := a.path()
	if path == "" && a.has("replacements") {
		return a.listed("")
	}
	if path != "" {
		if found := a.onFile(tool, path); len(found) > 0 {
			return found
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if name == "command" || name == "cmd" || name == "script" {
			return a.commands(tool, name)
		}
		if found := given(tool, name, a.text(name)); len(found) > 0 {
			return found
		}
	}
	return nil
}

// given are the operations of an argument that is neither a path nor a command. A patch changes
// something only where it is given to what applies it: prompts, notes and plans quote patches.
func given(tool, argument, text string) []Operation {
	if runsCode(tool) && (argument == "input" || argument == "code") {
		return code(text)
	}
	if patching(tool) || argument == "patch" || argument == "diff" || argument == "input" && strings.HasPrefix(strings.TrimSpace(text), "*** Begin Patch") {
		return patches(text)
	}
	return nil
}

// runsCode reports whether a tool runs a program that calls tools.
func runsCode(tool string) bool { return tool == "exec" }

// patching reports whether a tool's name says that it changes files by what it is given.
func patching(tool string) bool {
	name := strings.ToLower(tool)
	return strings.Contains(name, "patch") && !strings.Contains(name, "dispatch") || strings.Contains(name, "diff") || strings.Contains(name, "edit")
}

// arguments are a call's, by their names in small letters without separators.
type arguments map[string]json.RawMessage

// separators are what names of arguments have between their words.
var separators = strings.NewReplacer("_", "", "-", "")

// newArguments has, of names that are alike, the last in the order of bytes.
func newArguments(members map[string]json.RawMessage) arguments {
	out := make(arguments, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		out[strings.ToLower(separators.Replace(name))] = members[name]
	}
	return out
}

// text is the first of these arguments that is a text, or the last of texts.
func (a arguments) text(names ...string) string {
	for _, name := range names {
		var one string
		if json.Unmarshal(a[name], &one) == nil && one != "" {
			return one
		}
		var words []string
		if json.Unmarshal(a[name], &words) == nil && len(words) > 0 {
			return words[len(words)-1] // of a shell's arguments, the script is the last
		}
	}
	return ""
}

// path is that of the one file that a call names.
func (a arguments) path() string {
	return a.text("path", "filepath", "file", "filename", "absolutepath", "notebookpath", "targetfile", "relativepath", "pathinproject")
}

func (a arguments) has(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return a[name] != nil })
}

// number is the first of these arguments that is a number, or 0.
func (a arguments) number(names ...string) int {
	for _, name := range names {
		var n float64
		if json.Unmarshal(a[name], &n) == nil && n > 0 && n < 1<<31 {
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

// onFile are the operations of a call that names one file.
func (a arguments) onFile(tool, path string) []Operation {
	command := a.text("command")
	switch {
	case command == "insert" || a.has("insertline"):
		return []Operation{{Kind: Insert, Path: path, From: a.number("insertline"), New: a.text(slices.Concat(newNames, []string{"inserttext"})...)}}
	case command == "create" || a.has("filetext"):
		return []Operation{{Kind: Write, Path: path, New: a.text("filetext", "content")}}
	case command == "append":
		return []Operation{{Kind: Append, Path: path, New: a.text(newNames...)}}
	case a.has("diff"):
		return onePatch(path, a.text("diff"))
	case command == "view" || command == "str_replace" && a.text(oldNames...) == "":
		return []Operation{{Kind: Read, Path: path, From: a.firstOf("viewrange"), All: !a.has("viewrange")}}
	case a.has(oldNames...):
		return []Operation{a.replace(path)}
	case a.has(listNames...):
		return a.listed(path)
	case a.has(contentNames...) && !a.has("pattern"), a.has("text") && writes(tool):
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

// read is what a call does that shows a file, or lines of it.
func (a arguments) read(tool, path string) Operation {
	var all bool
	_ = json.Unmarshal(a["shouldreadentirefile"], &all)
	op := Operation{Kind: Read, Path: path, From: 1, All: true}
	switch {
	case all:
	case a.has("tail") || tool == "open": // a window, which says where it is
		op.From, op.All = 0, false
	default:
		op.From = max(a.number("offset", "startline", "start", "linestart", "lineoffset", "startlineoneindexed"), a.firstOf("viewrange"), a.firstOf("readrange"))
		op.All = op.From == 1 && !a.has("limit", "endline", "end", "lineend", "endlineoneindexedinclusive", "nlines", "head", "viewrange", "readrange")
	}
	return op
}

// onePatch are the operations of a patch that is given for one file, whatever it calls that.
func onePatch(path, text string) []Operation {
	if found := searchReplace(path, text); len(found) > 0 {
		return found
	}
	found := patches("\n" + text)
	for i := range found {
		found[i].Path = path
	}
	return found
}

// listNames are the names of the arguments that list replacements.
var listNames = []string{"edits", "edit", "replacements", "changes", "replacementchunks"}

// listed are the replacements that a call lists, of a file, or of that which each of them names.
func (a arguments) listed(path string) []Operation {
	var out []Operation
	for _, name := range listNames {
		var all []map[string]json.RawMessage
		if json.Unmarshal(a[name], &all) != nil {
			var one map[string]json.RawMessage
			_ = json.Unmarshal(a[name], &one) // what is in another form is no edit that is known
			all = append(all, one)
		}
		for _, members := range all {
			edit := newArguments(members)
			if file := cmp.Or(edit.path(), path); file != "" && edit.has(oldNames...) {
				out = append(out, edit.replace(file))
			}
		}
	}
	return out
}

// write is what a call does that gives a text for a file: all of it, what comes at its end, what
// comes before a line, or what takes the place of lines.
func (a arguments) write(tool, path string) Operation {
	op := Operation{Kind: Write, Path: path, New: a.text(slices.Concat(contentNames, []string{"text"})...)}
	line := a.number("line")
	switch {
	case a.has("start", "end"):
		return Operation{Kind: Change, Path: path}
	case a.text("mode") == "append" || string(a["append"]) == "true" || a.has("line") && line == 0 || strings.Contains(strings.ToLower(tool), "append"):
		op.Kind = Append
	case line > 0:
		op.Kind, op.From = Insert, line-1
	}
	return op
}

func (a arguments) firstOf(name string) int {
	var numbers []int
	if json.Unmarshal(a[name], &numbers) == nil && len(numbers) > 0 {
		return max(numbers[0], 1)
	}
	return 1
}

func (a arguments) replace(path string) Operation {
	var all bool
	for _, name := range []string{"replaceall", "changeall", "allowmultiple"} {
		_ = json.Unmarshal(a[name], &all)
	}
	return Operation{Kind: Replace, Path: path, Old: a.text(oldNames...), New: a.text(newNames...), All: all}
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

// searches reports whether a tool's name says that its result is lines that were found.
func searches(tool string) bool {
	name := strings.ToLower(tool)
	return strings.Contains(name, "grep") || strings.Contains(name, "search_file_content") || name == "rg"
}

// searched is the one file that is searched; empty where it may be a folder.
func (a arguments) searched() string {
	path := a.text("path")
	if strings.Contains(path[strings.LastIndexByte(path, '/')+1:], ".") {
		return path
	}
	return ""
}
