// Package program reads off the source of a program what it does to files, and which tools it calls. No
// program is run: what it does is known as far as it is made of literals.
package program

import (
	"path"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// MostBytes is above what a program has that an agent writes to change some files.
const MostBytes = 64 << 10

// UnknownPart is in a text for what is put into it and not known. No program has this character.
const UnknownPart = "\x00"

// Changes are those that the program in a file makes, whose name says in which language it is written.
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
