package fileview

import (
	"math"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// doubts say which commands of a script may not run, or fail where nobody sees it. Commands come in the
// order in which they are written, and places are counted in bytes.
type doubts struct {
	uncertain bool // the command that is taken in
	until     uint // those before this place are
	chain     uint // where the newest && ends
	strict    bool // the script stops where a command fails
}

// complains are programs that succeed, or say why not. Others may fail and show nothing of it, or what
// looks like any output: those that compare or find.
var complains = map[string]bool{"echo": true, "printf": true, "cat": true, "head": true, "tail": true, "ls": true, "pwd": true, "wc": true, "cp": true, "mv": true, "rm": true, "tee": true, "source": true, ".": true, "sed": true, "gsed": true, "perl": true}

// begin takes in a command. Those after it are uncertain where it has to succeed for them to run, and may fail.
func (d *doubts) begin(stmt *syntax.Stmt, silent bool) {
	d.uncertain = silent || stmt.Pos().Offset() < d.until
	fails := stmt.Negated
	switch command := stmt.Cmd.(type) {
	case *syntax.TestClause, *syntax.ArithmCmd:
		fails = true
	case *syntax.CallExpr:
		words := wordsOf(command.Args)
		if len(words) == 0 {
			break
		}
		program := path.Base(words[0])
		fails = fails || !quiet[program] && !complains[program] && interpreters[nameOf(program)] == nil
		switch {
		case program == "exit" || program == "return":
			d.until = math.MaxUint
		case program == "set":
			d.strict = d.strict || slices.ContainsFunc(words[1:], func(w string) bool {
				return w == "errexit" || strings.HasPrefix(w, "-") && strings.Contains(w, "e")
			})
		}
	}
	if fails && d.strict {
		d.until = math.MaxUint
	} else if fails {
		d.until = max(d.until, d.chain)
	}
}
