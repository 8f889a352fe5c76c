package fileop

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strings"
)

// listNames are the names of the arguments that list replacements.
var listNames = []string{"edits", "edit", "replacements", "changes", "replacementchunks"}

// Listed returns the replacements that a call lists, for the given file or for the file that each names. An
// entry that is not a replacement of a text is an unknown change.
func (a Arguments) Listed(path string) []Operation {
	var out []Operation
	for _, name := range listNames {
		for _, edit := range a.objects(name) {
			file := cmp.Or(edit.Path(), path)
			switch {
			case file == "":
			case edit.replaces():
				out = append(out, edit.replace(file))
			default:
				out = append(out, Operation{Kind: Change, Path: file})
			}
		}
	}
	return out
}

// objects returns the objects of an argument that is a list of objects, a single one, or a text with either.
func (a Arguments) objects(name string) []Arguments {
	raw := []byte(a[name])
	if len(raw) > 0 && raw[0] == '"' {
		text, _ := a.exact(name)
		raw = []byte(strings.TrimSpace(text))
	}
	var all []map[string]json.RawMessage
	if len(raw) == 0 || raw[0] != '[' && raw[0] != '{' {
		return nil
	}
	if json.Unmarshal(raw, &all) != nil {
		var one map[string]json.RawMessage
		if json.Unmarshal(raw, &one) != nil {
			return nil
		}
		all = append(all, one)
	}
	out := make([]Arguments, len(all))
	for i := range all {
		out[i] = NewArguments(all[i])
	}
	return out
}

// fileLists are the names of the arguments that list files.
var fileLists = []string{"files", "paths", "filepaths", "include"}

// tagged matches a file in the XML elements with which Roo Code listed several.
var tagged = regexp.MustCompile(`<path>([^<\n]+)</path>`)

// OnFiles returns the operations of a call that lists files. If it reads them, its result names each.
func (a Arguments) OnFiles(tool string) []Operation {
	if !a.Has(fileLists...) && !a.Has("args") {
		return nil
	}
	var out []Operation
	v := a.verbs(tool)
	for _, name := range fileLists {
		for _, file := range a.objects(name) {
			if path := file.Path(); path != "" {
				out = append(out, file.OnFile(tool, path)...)
			}
		}
		var names []string
		if raw := a[name]; len(raw) == 0 || json.Unmarshal(raw, &names) != nil {
			continue
		}
		for _, path := range names {
			switch {
			case path == "":
			case v.reads():
				out = append(out, Operation{Kind: Read, Path: path, From: 1, All: true})
			case v.removes():
				out = append(out, Operation{Kind: Remove, Path: path, All: true})
			case v.changes():
				out = append(out, Operation{Kind: Change, Path: path})
			}
		}
	}
	for _, m := range tagged.FindAllStringSubmatch(a.Text("args"), -1) {
		switch {
		case v.reads():
			out = append(out, Operation{Kind: Read, Path: m[1]})
		case v.changes():
			out = append(out, Operation{Kind: Change, Path: m[1]})
		}
	}
	for i := range out {
		out[i].Listed = out[i].Kind == Read
	}
	return out
}

// The names of the arguments of a tool that moves or copies a file.
var (
	fromNames = []string{"source", "sourcepath", "from", "oldpath", "frompath", "src"}
	toNames   = []string{"destination", "destinationpath", "to", "newpath", "topath", "dest", "target", "targetpath"}
)

// OnTwo returns the operation of a call that moves or copies a file; nil for other calls.
func (a Arguments) OnTwo(tool string) []Operation {
	to, _ := a.exact(toNames...)
	if to == "" {
		return nil
	}
	from, _ := a.exact(fromNames...)
	if from == "" {
		from = a.Path()
	}
	v := a.verbs(tool)
	switch {
	case from == "":
		return nil
	case v.has("move", "rename"):
		return []Operation{{Kind: Move, Path: from, To: to}}
	case v.has("copy"):
		return []Operation{{Kind: Copy, Path: from, To: to}}
	}
	return nil
}
