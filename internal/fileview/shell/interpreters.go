package shell

import (
	"path"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/contextd/contextd/internal/fileview/fileop"
	"github.com/contextd/contextd/internal/fileview/program"
)

// interpreters are the programs that run scripts in these languages, by their names without versions.
var interpreters = map[string]func(text string) []fileop.Operation{"python": program.Python, "pypy": program.Python, "node": program.JavaScript, "bun": program.JavaScript}

// versions are what ends the name of an interpreter.
const versions = ".0123456789"

// runners are programs that run the one that they are given.
var runners = map[string]bool{"uv": true, "poetry": true, "pipenv": true, "env": true, "time": true, "timeout": true}

// takesOne are flags of interpreters that a value follows which is no script.
var takesOne = regexp.MustCompile(`^-[XWr]$|^--require$|^--import$`)

// evaluates are the flags that a script follows.
var evaluates = regexp.MustCompile(`^-[a-zA-Z]*[cep]$|^--eval$|^--print$`)

// interpreted are the changes that a script makes which a command runs: one of its words, what it is
// given, or a file.
func interpreted(words []string, at statement) (ops []fileop.Operation, ok bool) {
	first := 0
	for runners[words[0]] && first+1 < len(words) && interpreters[nameOf(words[first])] == nil {
		first++
	}
	run := interpreters[nameOf(words[first])]
	if run == nil {
		return nil, false
	}
	for rest := words[first+1:]; len(rest) > 0; rest = rest[1:] {
		switch flag := rest[0]; {
		case flag == "-":
			return fed(run, at), true
		case flag == "-m":
			return nil, true
		case evaluates.MatchString(flag) && len(rest) > 1:
			return run(rest[1]), true
		case takesOne.MatchString(flag) && len(rest) > 1:
			rest = rest[1:]
		case !strings.HasPrefix(flag, "-") && flag != "":
			return []fileop.Operation{{Kind: fileop.Run, Path: flag}}, true
		}
	}
	return fed(run, at), true
}

// fed are the changes that the script makes which a command is given.
func fed(run func(string) []fileop.Operation, at statement) []fileop.Operation {
	if at.input != "" {
		return run(at.input)
	}
	ops := run(at.script)
	for i := range ops {
		ops[i] = ops[i].Uncertain()
	}
	return ops
}

// unknown takes in a command of which some words are not known: it edits files in place, or runs a script.
func (s *shell) unknown(words []string, at statement) {
	var ops []fileop.Operation
	if inPlace(words) {
		ops = inPlaceEdits(words)
	} else {
		ops, _ = interpreted(words, at)
	}
	for _, op := range ops {
		op = op.Uncertain()
		if known(op.Path) != "" {
			s.changed(op)
			continue
		}
		for _, item := range s.items {
			op.Path, op.All = matching(item)
			s.changed(op)
		}
	}
}

// matching is a file, or the folder of those that a pattern matches.
func matching(name string) (file string, folder bool) {
	if strings.ContainsAny(name, "*?[{") {
		return path.Dir(name), true
	}
	return name, false
}

// loop takes in what the variable of a loop is.
func (s *shell) loop(node *syntax.ForClause) {
	if words, ok := node.Loop.(*syntax.WordIter); ok {
		s.items = append(s.items, literals(words.Items)...)
	}
}

func nameOf(program string) string { return strings.TrimRight(path.Base(program), versions) }
