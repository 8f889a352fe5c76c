package shell

import (
	"math"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// doubts tracks which commands of a script may not run, or may fail without a message. Commands are read in the
// order in which they are written; places are offsets in bytes.
type doubts struct {
	uncertain bool // the command that is taken in
	until     uint // those before this place are
	chain     uint // where the newest && ends
	strict    bool // the script stops where a command fails
}

// complains are programs that succeed or print why not. Others may fail in silence, or with what looks like any
// output, such as programs that compare or search.
var complains = map[string]bool{"echo": true, "printf": true, "cat": true, "head": true, "tail": true, "ls": true, "pwd": true, "wc": true, "cp": true, "mv": true, "rm": true, "tee": true, "source": true, ".": true, "sed": true, "gsed": true, "perl": true}

// begin reads a command. If it may fail, the commands that run only after its success are uncertain.
func (d *doubts) begin(stmt *syntax.Stmt, at statement) {
	d.uncertain = at.silent || stmt.Pos().Offset() < d.until
	fails := stmt.Negated || at.silent
	switch command := stmt.Cmd.(type) {
	case *syntax.TestClause, *syntax.ArithmCmd:
		fails = true
	case *syntax.CallExpr:
		words := wordsOf(command.Args)
		if len(words) == 0 {
			break
		}
		program := path.Base(words[0])
		ends := strings.Contains(strings.Join(words, " ")+at.script+at.input, "exit")
		fails = fails || !quiet[program] && !complains[program] && interpreters[nameOf(program)] == nil || ends
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

// picked reports whether a command pipes its errors into a command that does not show them.
func picked(pipe *syntax.BinaryCmd) bool {
	call, ok := pipe.Y.Cmd.(*syntax.CallExpr)
	if ok && len(call.Args) > 0 && slices.Contains([]string{"cat", "head", "tail", "tee"}, wordsOf(call.Args[:1])[0]) {
		return false
	}
	return pipe.Op == syntax.PipeAll || slices.ContainsFunc(pipe.X.Redirs, func(r *syntax.Redirect) bool {
		return r.Op == syntax.DplOut && r.N != nil && r.N.Value == "2"
	})
}
