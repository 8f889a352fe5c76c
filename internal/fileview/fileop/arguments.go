package fileop

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Arguments are the arguments of a call, by their names in lower case without separators.
type Arguments map[string]json.RawMessage

// separators removes what separates the words of an argument's name.
var separators = strings.NewReplacer("_", "", "-", "")

// NewArguments normalizes the names of a call's arguments. Of several names that become the same one, the last
// in byte order counts.
func NewArguments(members map[string]json.RawMessage) Arguments {
	out := make(Arguments, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		out[strings.ToLower(separators.Replace(name))] = members[name]
	}
	return out
}

// decode decodes an argument into v; false if there is none, or it has another type. It looks the name up first,
// because most calls lack most of the names, and a JSON error allocates.
func (a Arguments) decode(name string, v any) bool {
	raw, ok := a[name]
	return ok && json.Unmarshal(raw, v) == nil
}

// Text returns the first of these arguments that is a text, or the last text of one that is a list; empty if
// there is none.
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

// exact returns the first of these arguments that is a text and not empty. known is false if there is no such
// text and one of the arguments is of another type, so that what the call says is unknown.
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

// word returns an argument that is a single short word, in lower case; empty if it is something else.
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

// Path returns the path of the one file that a call names; empty if it names none, or an address on the web.
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

// Folder returns the folder in which the call says that it runs; empty if it does not say.
func (a Arguments) Folder() string { return a.Text("workdir", "cwd", "workingdirectory", "workingdir") }

// Has reports whether a call has one of these arguments.
func (a Arguments) Has(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return a[name] != nil })
}

// Number returns the first of these arguments that is a number greater than 0, or a text with one; 0 if none is.
func (a Arguments) Number(names ...string) int {
	for _, name := range names {
		if n, ok := a.numeric(name); ok && n > 0 {
			return n
		}
	}
	return 0
}

// numeric returns an argument that is a number, or a text with one.
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

// numbers returns the numbers of an argument that is a list of them, or a text with such a list.
func (a Arguments) numbers(name string) []int {
	var list []int
	if raw := a[name]; len(raw) > 0 && json.Unmarshal(raw, &list) != nil {
		_ = json.Unmarshal([]byte(a.Text(name)), &list) // no list is none
	}
	return list
}

// set reports whether one of these arguments is true, or the text "true".
func (a Arguments) set(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(strings.Trim(string(a[name]), `"`), "true") })
}

// Elsewhere reports whether a call changes no file of this machine: it is a dry run, or works on a repository on
// a server or on a page of the web.
func (a Arguments) Elsewhere() bool {
	return a.set("dryrun", "previewonly") || a.Has("owner") && a.Has("repo") || strings.HasPrefix(a.Text("url", "uri"), "http")
}
