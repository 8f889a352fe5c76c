// Package fileop has what calls do to files, as operations, and reads those off a call that it states
// to the letter: in a patch, or in the arguments of a tool that works on one file.
package fileop

import (
	"path"
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
	Window          // the result shows a window of a file and names it, and Old became New there if it has any
	Splice          // New takes the place of Lines lines from From on, of the window's file; with All, it comes at the end
)

// Operation is what a call does to a file, by its arguments.
type Operation struct {
	Kind Kind
	Path string
	To   string
	// Dir is the folder in which relative names are, as the call says it; empty if it does not say.
	Dir string
	// From is the first line of what is read, counted from 1, or the line after which
	// something is inserted; 0 is not known.
	From int
	// Lines is how many lines of the file are shown at the most; 0 is any number. Of a Replace, Old is in so many
	// lines from From on, if these are known.
	Lines int
	// Old is what must be in the file to the letter, and New what is there after.
	Old, New string
	// All is set where every place of Old is replaced, or the whole file is read; see Kind for what it
	// says of others.
	All bool
	// Trim is set where a tool that replaces Old by nothing takes the line feed after it, too.
	Trim bool
	// First is set where a tool takes the first place of Old that comes after what it changed before in the file, and
	// after a line that has Anchor if that is not empty.
	First  bool
	Anchor string
	// Listed is set where a call reads files of a list: the result names each. Path may be a pattern.
	Listed bool
	// ByLine is set where the first place of each line is replaced.
	ByLine bool
	// Part is set where a command or a program does it, maybe among other things: it may be done although
	// the call failed.
	Part bool
}

// Shows reports whether it changes nothing: a part of the result is what it shows.
func (op Operation) Shows() bool { return op.Kind == Read || op.Kind == Search || op.Kind == Print }

// Uncertain is the operation where nothing says that it is done as it is written: the text of the file
// is not known then.
func (op Operation) Uncertain() Operation {
	switch op.Kind {
	case Substitute:
		return Operation{Kind: Change, Path: op.Path, Dir: op.Dir}
	case Run:
		op.All = true
	}
	return op
}

// Substitution is an edit of a text that may be nowhere in a file. It is not known where it joins lines.
func Substitution(path, before, after string) (op Operation, known bool) {
	known = before != "" && (!strings.HasSuffix(before, "\n") || after == "" || strings.HasSuffix(after, "\n"))
	return Operation{Kind: Substitute, Path: path, Old: before, New: after}, known
}

// Changes are changes of files, or of what is in folders, each once.
func Changes(names []string) []Operation {
	var out []Operation
	once := map[string]bool{}
	for _, name := range names {
		if name != "" && !once[name] {
			once[name] = true
			out = append(out, Operation{Kind: Change, Path: name, All: true})
		}
	}
	return out
}

// Slashed is a name with the separators that all systems know.
func Slashed(name string) string { return strings.ReplaceAll(name, `\`, "/") }

// In sets the folder of operations, and returns them.
func In(dir string, ops []Operation) []Operation {
	for i := range ops {
		ops[i].Dir = dir
	}
	return ops
}

// Full is a relative name joined to the folder in which the operation happens; empty for other names, and
// where the folder is not known.
func (op Operation) Full(name string) string { return Join(op.Dir, name) }

// Join is a relative name in a folder; empty if the name is not relative, or the folder is not known.
func Join(dir, name string) string {
	dir, name = Slashed(dir), Slashed(name)
	if dir == "" || name == "" || absolute(name) {
		return ""
	}
	full := path.Join(dir, name)
	if strings.HasPrefix(full, "../") || full == path.Clean(name) {
		return "" // it says no more than the name
	}
	return full
}

// absolute reports whether a name does not depend on a folder: in POSIX, in Windows, or from a home on.
func absolute(name string) bool {
	return path.IsAbs(name) || strings.HasPrefix(name, "~") || len(name) > 1 && name[1] == ':'
}
