package ledger

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/fileview/fileop"
	"github.com/contextd/contextd/internal/quote"
)

// Files collects the files that calls read and changed, as far as their arguments show.
type Files struct {
	gauge budget.Gauge
	at    map[string]int
	files []file
	clock int
	// lists caches the lists of changed files and of files only read; nil after Add.
	lists []fileList
}

type file struct {
	name    string // as it is listed
	full    string // with its folder; empty if that is unknown
	changed bool
	last    int // the newest call that named it
}

// fileList are files in the order in which they are listed.
type fileList struct {
	title budget.Piece
	names []budget.Piece // each between a space and a comma
	sums  []budget.Sum   // sums[n] is of the title and n names; computed as needed
}

// NewFiles returns an empty collection, whose lists a gauge measures.
func NewFiles(gauge budget.Gauge) *Files { return &Files{gauge: gauge, at: map[string]int{}} }

// Add records a call. An argument whose name ends in path or file names a file, and the tool's name says
// whether the call changes it. operations are what patches and commands in the arguments do to further
// files.
func (f *Files) Add(tool, arguments string, operations []fileop.Operation) {
	f.clock++
	f.lists = nil
	changes := ChangesFiles(tool)
	members, _ := readArguments(arguments) // no names if it is no object
	for _, name := range sortedNames(members) {
		var value string
		if namesFile(name) && json.Unmarshal(members[name], &value) == nil && isFileName(value) {
			f.note(value, fullName(value, operations), changes)
		}
	}
	for _, op := range operations {
		name := op.Path
		switch op.Kind {
		case fileop.Read, fileop.Search, fileop.Print, fileop.Run, fileop.Window, fileop.Splice:
			continue
		case fileop.Move, fileop.Copy:
			name = op.To
		case fileop.Change: // may be a log or a branch: counts only for known files
			if _, ok := f.find(name, op.Full(name)); !ok {
				continue
			}
		}
		if isFileName(name) {
			f.note(name, op.Full(name), true)
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

// fullName returns the name of an argument with the folder of the operation on that file; empty if the folder is
// unknown.
func fullName(name string, operations []fileop.Operation) string {
	for _, op := range operations {
		if op.Path == name {
			return op.Full(name)
		}
	}
	return ""
}

// note records that the newest call named a file. full is the name with its folder; empty if that is unknown. It is
// not used if it is too long.
func (f *Files) note(name, full string, changed bool) {
	if !isFileName(full) {
		full = ""
	}
	i, ok := f.find(name, full)
	if !ok {
		i = len(f.files)
		if _, taken := f.at[name]; taken {
			name = full // the name in short is of another folder's file
		}
		f.files = append(f.files, file{name: strings.Clone(name)})
		f.at[f.files[i].name] = i
	}
	if full != "" && f.files[i].full == "" {
		f.files[i].full = strings.Clone(full)
		f.at[f.files[i].full] = i
	}
	f.files[i].changed = f.files[i].changed || changed
	f.files[i].last = f.clock
}

// find returns the index of a file that was named before, in the same folder if both folders are known.
func (f *Files) find(name, full string) (i int, ok bool) {
	if i, ok = f.at[full]; full != "" && ok {
		return i, true
	}
	i, ok = f.at[name]
	return i, ok && (full == "" || f.files[i].full == "" || f.files[i].full == full)
}

// separators removes the characters that join the parts of an argument's name.
var separators = strings.NewReplacer("_", "", "-", "")

func namesFile(argument string) bool {
	a := strings.ToLower(separators.Replace(argument))
	return strings.HasSuffix(a, "path") || strings.HasSuffix(a, "file") || strings.HasSuffix(a, "filename")
}

// fileIn returns the file that the first file argument (by name) names.
func fileIn(members map[string]json.RawMessage) (string, bool) {
	for _, name := range sortedNames(members) {
		var value string
		if namesFile(name) && json.Unmarshal(members[name], &value) == nil && isFileName(value) {
			return value, true
		}
	}
	return "", false
}

func isFileName(value string) bool {
	const longest = 400 // bytes
	return value != "" && len(value) <= longest && !strings.ContainsAny(value, "\n\r\x00")
}

// changing are parts of the names of tools that change files.
var changing = []string{"write", "edit", "patch", "create", "replace", "insert", "update", "delete", "remove", "move", "rename", "append", "save"}

// ChangesFiles reports whether a tool's name says that it changes files.
func ChangesFiles(tool string) bool {
	name := strings.ToLower(tool)
	return slices.ContainsFunc(changing, func(part string) bool { return strings.Contains(name, part) })
}

// Write lists the changed files, then those that were only read, each newest first, in at most limit tokens. Each
// list says how many files it omits.
func (f *Files) Write(limit uint64) []budget.Piece {
	if f.lists == nil {
		f.lists = f.sorted()
	}
	var out []budget.Piece
	for i := range f.lists {
		line := f.write(&f.lists[i], limit)
		out = append(out, line...)
		limit -= min(limit, f.gauge.Sum(line...).Tokens())
	}
	return out
}

// sorted lists the files, the newest first.
func (f *Files) sorted() []fileList {
	newest := slices.Clone(f.files)
	slices.SortStableFunc(newest, func(a, b file) int { return b.last - a.last })
	read := slices.DeleteFunc(slices.Clone(newest), func(f file) bool { return f.changed })
	changed := slices.DeleteFunc(newest, func(f file) bool { return !f.changed })
	return []fileList{f.list("Files changed", changed), f.list("Files read", read)}
}

// list returns a list of files, in their order.
func (f *Files) list(title string, files []file) fileList {
	names, folder := inFolder(files)
	if folder != "" {
		title += " in " + quote.Escape(folder)
	}
	piece := f.gauge.Piece(title + ":")
	out := fileList{title: piece, names: make([]budget.Piece, len(names)), sums: []budget.Sum{*f.gauge.Sum(piece)}}
	for i, name := range names {
		out.names[i] = f.gauge.Piece(" " + quote.Escape(name) + ",")
	}
	return out
}

// write returns the line of a list with as many names as fit; nothing if no name fits.
func (f *Files) write(list *fileList, limit uint64) []budget.Piece {
	end := func(n int) []budget.Piece {
		last := list.names[n-1]
		if rest := len(list.names) - n; rest > 0 {
			return []budget.Piece{last, f.gauge.Piece(" and " + strconv.Itoa(rest) + " more\n")}
		}
		return []budget.Piece{f.gauge.Piece(strings.TrimSuffix(last.Text, ",") + "\n")}
	}
	n := searchMost(len(list.names), func(n int) bool {
		for len(list.sums) < n {
			next := list.sums[len(list.sums)-1]
			if next.Tokens()/2 > limit {
				return false
			}
			next.Add(list.names[len(list.sums)-1])
			list.sums = append(list.sums, next)
		}
		sum := list.sums[n-1]
		for _, p := range end(n) {
			sum.Add(p)
		}
		return sum.Tokens() <= limit
	})
	if n == 0 {
		return nil
	}
	return slices.Concat([]budget.Piece{list.title}, list.names[:n-1], end(n))
}
