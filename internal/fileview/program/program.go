// Package program infers from a program's source what it does to files, and which tools it calls. It runs no
// program: it follows only what consists of literals.
package program

import (
	"path"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// MostBytes is the size above which programs are not followed: those that agents write to change some files are
// smaller.
const MostBytes = 64 << 10

// UnknownPart is in a text in place of an inserted value that is unknown. No program contains this character.
const UnknownPart = "\x00"

// Changes returns the changes that the program in a file makes. The ending of the file's name says in which
// language it is written.
func Changes(name, text string) []fileop.Operation {
	if len(text) > MostBytes {
		return nil
	}
	switch path.Ext(name) {
	case ".py":
		return Python(text)
	case ".js", ".mjs", ".cjs":
		return JavaScript(text)
	}
	return nil
}
