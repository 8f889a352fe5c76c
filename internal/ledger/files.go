package ledger

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Files gathers the files that calls read and changed, as far as their arguments show. The
// zero value is empty and ready.
type Files struct {
	at    map[string]int
	files []file
	clock int
}

type file struct {
	name    string
	changed bool
	last    int // the newest call that named it
}

// Add takes in a call. An argument whose name ends in path or file names a file,
// and so do the headers of a patch. The tool's name says whether it changes what it names.
func (f *Files) Add(tool, arguments string) {
	f.clock++
	changes := ChangesFiles(tool)
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &members) != nil {
		f.addPatch(arguments)
		return
	}
	for _, name := range sortedNames(members) {
		var value string
		if json.Unmarshal(members[name], &value) != nil {
			continue
		}
		if namesFile(name) && isFileName(value) {
			f.note(value, changes)
		} else {
			f.addPatch(value)
		}
	}
}

func sortedNames(members map[string]json.RawMessage) []string {
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// addPatch takes in the headers of a patch in the form that begins *** Begin Patch.
func (f *Files) addPatch(text string) {
	if !strings.Contains(text, "*** Begin Patch") {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		for _, header := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if name, ok := strings.CutPrefix(line, header); ok && isFileName(strings.TrimSpace(name)) {
				f.note(strings.TrimSpace(name), true)
			}
		}
	}
}

func (f *Files) note(name string, changed bool) {
	if f.at == nil {
		f.at = map[string]int{}
	}
	i, ok := f.at[name]
	if !ok {
		i = len(f.files)
		f.at[strings.Clone(name)] = i
		f.files = append(f.files, file{name: strings.Clone(name)})
	}
	f.files[i].changed = f.files[i].changed || changed
	f.files[i].last = f.clock
}

func namesFile(argument string) bool {
	a := strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(argument))
	return strings.HasSuffix(a, "path") || strings.HasSuffix(a, "file") || strings.HasSuffix(a, "filename")
}

func isFileName(value string) bool {
	const longest = 400 // bytes
	return value != "" && len(value) <= longest && !strings.ContainsAny(value, "\n\r\x00")
}

// changing are parts of the names of tools that change files.
var changing = []string{"write", "edit", "patch", "create", "replace", "insert", "update", "delete", "remove", "move", "rename", "append", "save"}

// ChangesFiles reports whether a tool's name says that it writes.
func ChangesFiles(tool string) bool {
	name := strings.ToLower(tool)
	return slices.ContainsFunc(changing, func(part string) bool { return strings.Contains(name, part) })
}

// Write lists the files changed, then those only read, the newest first of each, in
// at most limit tokens as count measures them. How many are left out is said.
func (f *Files) Write(limit uint64, count func(string) uint64) string {
	var out strings.Builder
	used := uint64(0)
	for _, kind := range []struct {
		title   string
		changed bool
	}{{"Files changed: ", true}, {"Files read: ", false}} {
		var names []string
		for _, entry := range f.files {
			if entry.changed == kind.changed {
				names = append(names, entry.name)
			}
		}
		slices.SortStableFunc(names, func(a, b string) int { return f.files[f.at[b]].last - f.files[f.at[a]].last })
		room := limit - min(limit, used)
		n := searchMost(len(names), func(n int) bool { return count(fileLine(kind.title, names, n)) <= room })
		if line := fileLine(kind.title, names, n); n > 0 && count(line) <= room {
			used += count(line)
			out.WriteString(line)
		}
	}
	return out.String()
}

func fileLine(title string, names []string, n int) string {
	line := title + strings.Join(names[:n], ", ")
	if rest := len(names) - n; rest > 0 {
		line += ", and " + strconv.Itoa(rest) + " more"
	}
	return line + "\n"
}
