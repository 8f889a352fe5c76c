package shell

import (
	"path"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/contextd/contextd/internal/fileview/fileop"
	"github.com/contextd/contextd/internal/fileview/program"
)

// interpreters maps the names of interpreters, without versions, to what their scripts do.
var interpreters = map[string]func(text string) []fileop.Operation{"python": program.Python, "pypy": program.Python, "node": program.JavaScript, "bun": program.JavaScript}

// versions are the characters of the version at the end of an interpreter's name.
const versions = ".0123456789"

// runners are programs that run the program in their arguments.
var runners = map[string]bool{"uv": true, "poetry": true, "pipenv": true, "env": true, "time": true, "timeout": true}

// takesOne matches flags of interpreters with a value that is not a script.
var takesOne = regexp.MustCompile(`^-[XWr]$|^--require$|^--import$`)

// evaluates matches the flags that a script follows.
var evaluates = regexp.MustCompile(`^-[a-zA-Z]*[cep]$|^--eval$|^--print$`)

// interpreted returns the changes by the script that a command runs: from its words, its input or a file. ok is
// false if the command runs none.
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

// fed returns the changes by the script that a command reads from its input.
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

// unknown reads a command with unknown words: it may edit files in place, or run a script.
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

// matching returns a file, or the folder of the files that match a pattern.
func matching(name string) (file string, folder bool) {
	if strings.ContainsAny(name, "*?[{") {
		return path.Dir(name), true
	}
	return name, false
}

// loop reads the values of a loop's variable.
func (s *shell) loop(node *syntax.ForClause) {
	if words, ok := node.Loop.(*syntax.WordIter); ok {
		s.items = append(s.items, literals(words.Items)...)
	}
}

func nameOf(program string) string { return strings.TrimRight(path.Base(program), versions) }
