package fileop

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The names of the arguments of tools that edit, and of those that write.
var (
	oldNames     = []string{"oldstring", "oldstr", "oldtext", "search", "old", "targetcontent", "oldcontent", "oldcode"}
	newNames     = []string{"newstring", "newstr", "newtext", "replace", "new", "replacementcontent", "newcontent", "newcode"}
	contentNames = []string{"content", "contents", "codecontent", "filecontent"}
)

// OnFile returns the operations of a call that names one file.
func (a Arguments) OnFile(tool, path string) []Operation {
	command, v := a.word("command"), a.verbs(tool)
	switch {
	case command == "insert" || a.Has("insertline"):
		return a.insert(path)
	case command == "create" || a.Has("filetext"):
		return []Operation{a.write(v, path, "filetext", "content")}
	case command == "append":
		return []Operation{a.given(Append, path, newNames...)}
	case a.Has("diff"):
		return orChange(v, path, onePatch(path, a.Text("diff")))
	case command == "view":
		return []Operation{a.read(tool, path)}
	case a.Has("oldstr1") || a.Has("insertline1"):
		return a.counted(path)
	case a.replaces():
		return trimmed(tool, []Operation{a.replace(path)})
	case a.Has(listNames...):
		return trimmed(tool, orChange(v, path, a.Listed(path)))
	case a.Has(contentNames...) && !a.Has("pattern"):
		text, _ := a.exact(contentNames...)
		if found := searchReplace(path, text); len(found) > 0 && !v.contains("write", "create") {
			return found
		}
		return []Operation{a.write(v, path, contentNames...)}
	case a.Has("text") && v.contains(writing...):
		return []Operation{a.write(v, path, "text")}
	case v.reads():
		return []Operation{a.read(tool, path)}
	case v.removes():
		return []Operation{{Kind: Remove, Path: path, All: true}}
	}
	return orChange(v, path, nil)
}

// trimmed are the operations of a tool that may be one of Claude Code's, which take a line feed with what they delete.
func trimmed(tool string, ops []Operation) []Operation {
	for i := range ops {
		ops[i].Trim = tool == "Edit" || tool == "MultiEdit"
	}
	return ops
}

// orChange returns the operations, or an unknown change if there are none and the tool changes files.
func orChange(v verbs, path string, found []Operation) []Operation {
	if len(found) == 0 && v.changes() {
		return []Operation{{Kind: Change, Path: path}}
	}
	return found
}

// Changed returns an unknown change of the one file that a call names, if its tool changes files.
func (a Arguments) Changed(tool string) []Operation {
	if path := a.Path(); path != "" {
		return orChange(a.verbs(tool), path, nil)
	}
	return nil
}

// given returns the operation with the text in an argument, or an unknown change if that is not a text.
func (a Arguments) given(kind Kind, path string, names ...string) Operation {
	text, ok := a.exact(names...)
	if !ok || text == "" && slices.ContainsFunc(names, func(name string) bool { return string(a[name]) == "null" }) {
		return Operation{Kind: Change, Path: path}
	}
	return Operation{Kind: kind, Path: path, New: text}
}

// insert returns the operation of an editor that inserts at a line number. Most insert the text after that line;
// Cline, whose argument is new_text, before it. -1 is the end of the file.
func (a Arguments) insert(path string) []Operation {
	line, ok := a.numeric("insertline")
	op := a.given(Insert, path, slices.Concat(newNames, []string{"inserttext"})...)
	switch {
	case !ok || line < -1:
		op = Operation{Kind: Change, Path: path}
	case op.Kind == Change:
	case line == -1:
		op.Kind = Append
	default:
		op.From = line
		if a.Has("newtext") && !a.Has("command") {
			op.From = max(line-1, 0)
		}
		if strings.HasSuffix(op.New, "\n") {
			op.New += "\n" // the editor takes what follows the last line feed for a line
		}
	}
	return []Operation{op}
}

// counted returns the replacements of an editor that numbers the arguments of each replacement.
func (a Arguments) counted(path string) []Operation {
	var out []Operation
	for i := 1; a.Has("oldstr" + strconv.Itoa(i)); i++ {
		n := strconv.Itoa(i)
		out = append(out, Arguments{"oldstr": a["oldstr"+n], "newstr": a["newstr"+n]}.replace(path))
	}
	if len(out) == 0 {
		out = []Operation{{Kind: Change, Path: path}}
	}
	return out
}

// placeNames are names of arguments that select a part of a file for a text.
var placeNames = []string{
	"start", "end", "startline", "endline", "linestart", "lineend", "firstline", "lastline", "fromline", "toline", "linenumber", "lines", "range", "linerange",
	"offset", "position", "row", "column", "after", "before", "afterline", "beforeline", "insertafter", "insertbefore", "anchor", "symbol", "namepath", "cellid",
	"cellnumber", "needle", "startlineoneindexed", "firstreplacedline",
}

// elided matches a line that an editor replaces by lines of the file.
var elided = regexp.MustCompile(`(?mi)^[ \t]*(?://|#|/\*|<!--|--|;|%|\{/\*)?[ \t]*\.\.\.[ \t]*\(?(?:existing|rest|remaining|unchanged|other|same|keep|previous)\b`)

// write returns the operation of a call that gives a text for a file: for all of it, for its end, for the place
// before a line, or for an unknown part.
func (a Arguments) write(v verbs, path string, names ...string) Operation {
	unknown := Operation{Kind: Change, Path: path}
	op := a.given(Write, path, names...)
	line, hasLine := a.numeric("line")
	mode := a.word("mode")
	switch {
	case op.Kind == Change, !v.stores(), a.Has(placeNames...):
		return unknown
	case mode == "append" || a.set("append") || v.contains("append"):
		op.Kind = Append
	case hasLine && v.has("insert") && v.has("content"):
		if op.Kind, op.From = Insert, line-1; line <= 0 {
			op.Kind, op.From = Append, 0
		}
	case a.Has("line") || v.contains("insert", "prepend") || mode != "" && !slices.Contains(wholeModes, mode):
		return unknown
	case !v.contains("write", "create") && elided.MatchString(op.New):
		return unknown
	}
	return op
}

// wholeModes are the values of the argument mode with which a whole file is written.
var wholeModes = []string{"write", "overwrite", "rewrite", "create", "replace", "new", "full", "w"}

// onePatch returns the operations of a patch that is given for one file, whatever name the patch has for it.
func onePatch(path, text string) []Operation {
	if found := searchReplace(path, text); len(found) > 0 {
		return found
	}
	found := Patches("\n" + text)
	for i := range found {
		found[i].Path = path
	}
	return found
}

// pairs are names of two arguments: of a text, and of its replacement.
var pairs = [][2]string{{"before", "after"}, {"find", "replace"}, {"find", "replacement"}}

// replaces reports whether the arguments have a text and its replacement.
func (a Arguments) replaces() bool {
	return a.Has(oldNames...) || slices.ContainsFunc(pairs, func(pair [2]string) bool { return a.Has(pair[0]) && a.Has(pair[1]) })
}

// replace returns the replacement that the arguments describe. If they limit it to some lines, the text is not
// replaced elsewhere.
func (a Arguments) replace(path string) Operation {
	before, ok := a.exact(oldNames...)
	after, ok2 := a.exact(newNames...)
	for _, pair := range pairs {
		if !a.Has(oldNames...) && a.Has(pair[0]) && a.Has(pair[1]) {
			before, ok = a.exact(pair[0])
			after, ok2 = a.exact(pair[1])
		}
	}
	if !ok || !ok2 || a.set("useregex", "isregex", "regex", "ignorecase") || a.word("mode") == "regex" || string(a["casesensitive"]) == "false" || a.Has("firstreplacedline") {
		return Operation{Kind: Change, Path: path}
	}
	op := Operation{Kind: Replace, Path: path, Old: strings.ReplaceAll(before, "\r\n", "\n"), New: strings.ReplaceAll(after, "\r\n", "\n")}
	op.All = a.set("replaceall", "changeall", "allowmultiple", "replacealloccurrences", "allowmultipleoccurrences") || a.Number("expectedreplacements") > 1
	if from, to := a.Number("startline"), a.Number("endline"); from > 0 && to >= from {
		op.From, op.Lines = from, to-from+1
	}
	return op
}
