package fileop

import (
	"encoding/json"
	"maps"
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

// exact is the first of these arguments that is a text and not empty. It is false if none is, and one of them is
// something else than a text: what that says is not known.
func (a Arguments) exact(names ...string) (string, bool) {
	known := true
	for _, name := range names {
		if !a.Has(name) {
			continue
		}
		var one *string
		if !a.decode(name, &one) {
			known = false
		} else if one != nil && *one != "" {
			return *one, true
		}
	}
	return "", known
}

// word is an argument that is one word, in small letters; empty if it is not.
func (a Arguments) word(name string) string {
	const longest = 24
	if raw := a[name]; len(raw) <= longest {
		if text, _ := a.exact(name); !strings.ContainsAny(text, " \t\n") {
			return strings.ToLower(text)
		}
	}
	return ""
}

// pathNames are the names of arguments that name the one file of a call.
var pathNames = []string{
	"path", "filepath", "file", "filename", "absolutepath", "notebookpath", "targetfile", "relativepath", "pathinproject", "relativeworkspacepath",
	"targetnotebook", "uri",
}

// Path is that of the one file that a call names.
func (a Arguments) Path() string {
	name, _ := a.exact(pathNames...)
	if rest, ok := strings.CutPrefix(name, "file://"); ok {
		return rest
	}
	if strings.Contains(name, "://") {
		return ""
	}
	return name
}

// Folder is the folder in which a call runs, as it says; empty if it does not.
func (a Arguments) Folder() string { return a.Text("workdir", "cwd", "workingdirectory", "workingdir") }

// Has reports whether a call has one of these arguments.
func (a Arguments) Has(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return a[name] != nil })
}

// Number is the first of these arguments that is a number greater than 0, or a text of one; 0 if none is.
func (a Arguments) Number(names ...string) int {
	for _, name := range names {
		if n, ok := a.numeric(name); ok && n > 0 {
			return n
		}
	}
	return 0
}

// numeric is an argument that is a number, or a text of one.
func (a Arguments) numeric(name string) (int, bool) {
	const longest = 16
	raw := a[name]
	if len(raw) == 0 || len(raw) > longest {
		return 0, false
	}
	n, err := strconv.ParseFloat(strings.Trim(string(raw), `" `), 64)
	return int(n), err == nil && n > -1<<31 && n < 1<<31
}

// negative reports whether one of these arguments is a number less than 0.
func (a Arguments) negative(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { n, ok := a.numeric(name); return ok && n < 0 })
}

// numbers are those in an argument that is a list of them, or a text of one.
func (a Arguments) numbers(name string) []int {
	var list []int
	if raw := a[name]; len(raw) > 0 && json.Unmarshal(raw, &list) != nil {
		_ = json.Unmarshal([]byte(a.Text(name)), &list) // no list is none
	}
	return list
}

// set reports whether one of these arguments is true, or a text that says so.
func (a Arguments) set(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(strings.Trim(string(a[name]), `"`), "true") })
}

// Elsewhere reports whether a call does nothing to files of this machine: it only says what it would change, or works
// on a repository of a server, or on a page of the web.
func (a Arguments) Elsewhere() bool {
	return a.set("dryrun", "previewonly") || a.Has("owner") && a.Has("repo") || strings.HasPrefix(a.Text("url", "uri"), "http")
}
