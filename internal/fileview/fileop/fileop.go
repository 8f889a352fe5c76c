// Package fileop defines the operations that calls do to files, and finds those that a call states literally: in
// a patch, or in the arguments of a tool that works on files.
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
	// Dir is the folder that relative names are relative to; empty if the call does not say.
	Dir string
	// From is the first line of what is read, counted from 1, or the line after which something is inserted; 0
	// is unknown.
	From int
	// Lines is the most lines of the file that are shown; 0 is no limit. For a Replace with From, Old is within
	// this many lines from From on.
	Lines int
	// Old is the exact text that is replaced, and New the text in its place.
	Old, New string
	// All is set where every Old is replaced, or the whole file is read. Kind says what it means for other
	// kinds.
	All bool
	// Trim is set where a tool that deletes Old deletes the line feed after it, too.
	Trim bool
	// First is set where a tool replaces the first Old after its previous change of the file and, if Anchor is
	// not empty, after a line with Anchor.
	First  bool
	Anchor string
	// Listed is set where a call reads a list of files, so that its result names each. Path may be a pattern.
	Listed bool
	// ByLine is set where the first Old of each line is replaced.
	ByLine bool
	// Part is set where a command or a program does this, perhaps among other things. It may have been done
	// although the call failed.
	Part bool
}

// Shows reports whether the operation changes nothing, and shows what it found as a part of the result.
func (op Operation) Shows() bool { return op.Kind == Read || op.Kind == Search || op.Kind == Print }

// Uncertain returns what is left of the operation if it may not have been done as written: the file may have
// another text afterwards.
func (op Operation) Uncertain() Operation {
	switch op.Kind {
	case Substitute:
		return Operation{Kind: Change, Path: op.Path, Dir: op.Dir}
	case Run:
		op.All = true
	}
	return op
}

// Substitution returns an edit of a text that the file may not have. known is false where the edit joins lines,
// since the result is then unknown.
func Substitution(path, before, after string) (op Operation, known bool) {
	known = before != "" && (!strings.HasSuffix(before, "\n") || after == "" || strings.HasSuffix(after, "\n"))
	return Operation{Kind: Substitute, Path: path, Old: before, New: after}, known
}

// Changes returns unknown changes of files, or of everything in folders, one for each name.
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

// Slashed returns a name with slashes as separators, which all systems accept.
func Slashed(name string) string { return strings.ReplaceAll(name, `\`, "/") }

// In sets the folder of all operations, and returns them.
func In(dir string, ops []Operation) []Operation {
	for i := range ops {
		ops[i].Dir = dir
	}
	return ops
}

// Full returns a relative name joined to the operation's folder; empty for other names, and if the folder is
// unknown.
func (op Operation) Full(name string) string { return Join(op.Dir, name) }

// Join returns a relative name joined to a folder; empty if the name is not relative, the folder is unknown, or
// the two together say no more than the name.
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
