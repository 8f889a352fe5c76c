// Package shell infers from the commands of POSIX shells and of PowerShell what they do to files. It runs none.
package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/contextd/contextd/internal/fileview/fileop"
	"github.com/contextd/contextd/internal/fileview/program"
)

const (
	// longestScript is the length, in bytes, above which a script that only shows files is not parsed.
	longestScript = 4 << 10
	// mostBrackets bounds how deep brackets are nested, because the parser is recursive.
	mostBrackets = 500
)

// Argv returns what a program does that is run with these words, its own name first. If it is a shell, the last
// word is its script. dir is the folder in which it runs; empty is unknown.
func Argv(words []string, dir string) []fileop.Operation {
	switch {
	case len(words) == 0:
		return nil
	case len(words) > 1 && appliers[path.Base(words[0])]:
		return fileop.In(dir, fileop.Patches(strings.Join(words[1:], "\n")))
	case len(words) == 1, slices.ContainsFunc(words, func(w string) bool { return shellFlag.MatchString(w) }):
		return Commands(path.Base(fileop.Slashed(words[0])), words[len(words)-1], dir)
	}
	s := shell{inOrder: true, dir: dir}
	s.call(words, statement{})
	return s.operations()
}

// appliers are the programs that take a patch that begins with *** Begin Patch.
var appliers = map[string]bool{"apply_patch": true, "applypatch": true}

// shellFlag matches the flags of shells that a script follows.
var shellFlag = regexp.MustCompile(`^(?:-[a-z]{0,4}c|/c|(?i:-command))$`)

// holdsMore matches what lets a long script write files: a text or a program in it.
var holdsMore = regexp.MustCompile(`<<| -[ce] |^` + editor + ` `)

// Commands returns what a script does to files. tool is the tool that runs it; dir is the folder in which it
// begins, empty if unknown.
func Commands(tool, script, dir string) []fileop.Operation {
	if strings.Contains(script, "apply") || strings.Contains(script, "patch") {
		if found := fileop.Patches(script); len(found) > 0 && applied(script) {
			return fileop.In(stays(script, dir), found)
		}
	}
	if op, ok := fileop.LineEdit(script); ok {
		return []fileop.Operation{op}
	}
	if forPowerShell(tool, script) {
		return powerShell(script, stays(script, dir))
	}
	if len(script) > longestScript && !holdsMore.MatchString(script) {
		return nil
	}
	if len(script) > program.MostBytes || nesting(script) > mostBrackets {
		return nil
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return nil
	}
	s := shell{inOrder: true, dir: dir}
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Stmt:
			s.take(node)
		case *syntax.BinaryCmd:
			s.join(node)
		case *syntax.ForClause:
			s.inOrder, s.branches = false, true
			s.loop(node)
		case *syntax.IfClause, *syntax.WhileClause, *syntax.CaseClause, *syntax.FuncDecl:
			s.inOrder, s.branches = false, true
		case *syntax.CmdSubst:
			s.inOrder = false
			s.doubts.until = max(s.doubts.until, node.End().Offset()) // what it says may not be shown
		case *syntax.ProcSubst, *syntax.Subshell, *syntax.Block:
			s.inOrder = false
		}
		return true
	})
	return s.operations()
}

// nesting returns how deep the brackets of a script are nested at most, quoted or not.
func nesting(script string) int {
	depth, most := 0, 0
	for i := range len(script) {
		switch script[i] {
		case '(', '[', '{':
			depth++
			most = max(most, depth)
		case ')', ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return most
}

// applied reports whether a command says that it applies the patch in it.
func applied(script string) bool {
	return strings.Contains(script, "apply_patch") || strings.Contains(script, "applypatch") || strings.Contains(script, "git apply") || strings.Contains(script, "patch -p")
}

// shell gathers what the commands of a script do.
type shell struct {
	steps []step
	fed   map[*syntax.Stmt]statement
	// inOrder is set where all commands run once, one after the other.
	inOrder bool
	// branches is set where a command may run never, or more than once.
	branches bool
	items    []string // of loops
	dir      string   // the folder in which the next command runs; empty is unknown
	doubts   doubts
}

// step is what a command does: a change, or what it shows. The kind of op is 0 if it shows nothing, and Print if
// it is unknown what it shows.
type step struct {
	op    fileop.Operation
	piped bool // it is given what the step before shows
}

// statement says what a command reads and where its output goes.
type statement struct {
	piped  bool
	input  string // what it reads, if that is a literal
	script string // and where it is not
	output string // the file that it writes; empty is none
	adds   bool   // at the end of that file
	hidden bool   // its output is not shown
	silent bool   // nor are its errors
}

// join reads two commands that are joined by an operator.
func (s *shell) join(b *syntax.BinaryCmd) {
	switch b.Op {
	case syntax.Pipe, syntax.PipeAll:
		input := ""
		if call, ok := b.X.Cmd.(*syntax.CallExpr); ok {
			words := literals(call.Args)
			if text, ok := printed(words); ok && len(b.X.Redirs) == 0 {
				input = text
			} else if len(words) == 1 && words[0] == "cat" {
				input = redirections(b.X, statement{}).input
			}
		}
		if s.fed == nil {
			s.fed = map[*syntax.Stmt]statement{}
		}
		s.fed[b.Y] = statement{piped: true, input: input}
		if picked(b) {
			s.fed[b.X] = statement{silent: true}
		}
	case syntax.AndStmt:
		s.doubts.chain = max(s.doubts.chain, b.End().Offset())
	case syntax.OrStmt:
		s.inOrder, s.branches = false, true
	}
}

// take reads a statement.
func (s *shell) take(stmt *syntax.Stmt) {
	if stmt.Background {
		s.inOrder = false
	}
	at := redirections(stmt, s.fed[stmt])
	s.doubts.begin(stmt, at)
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok {
		if at.output != "" {
			s.changed(fileop.Operation{Kind: fileop.Change, Path: at.output})
		}
		return
	}
	words := literals(call.Args)
	if words == nil && len(call.Args) > 0 {
		if s.unknown(wordsOf(call.Args), at); path.Base(wordsOf(call.Args[:1])[0]) == "cd" {
			s.dir = ""
		}
	}
	if len(words) > 1 && words[0] == "sudo" {
		words = words[1:]
	}
	if at.output != "" {
		s.changed(written(words, at))
	}
	if len(words) == 0 {
		s.show(fileop.Operation{Kind: fileop.Print}, at)
		return
	}
	s.call(words, at)
}

func (s *shell) changed(ops ...fileop.Operation) {
	for _, op := range ops {
		if s.doubts.uncertain {
			op = op.Uncertain()
		}
		if op.Dir = s.dir; op.Path != "" {
			s.steps = append(s.steps, step{op: op})
		}
	}
}

// show records what a command shows, if anything. Programs that only print are taken to succeed.
func (s *shell) show(op fileop.Operation, at statement) {
	if at.hidden {
		if op.Kind == fileop.Print && op.New == "" && !at.silent && !at.piped {
			op = fileop.Operation{Kind: fileop.Print} // errors
		} else {
			op = fileop.Operation{}
		}
	}
	op.Dir = s.dir
	s.steps = append(s.steps, step{op, at.piped})
}

// redirections returns what a statement reads and where its output goes.
func redirections(stmt *syntax.Stmt, at statement) statement {
	for _, r := range stmt.Redirs {
		switch r.Op {
		case syntax.RdrOut, syntax.RdrClob, syntax.AppOut, syntax.RdrAll, syntax.AppAll:
			file := ""
			if words := literals([]*syntax.Word{r.Word}); len(words) == 1 {
				file = words[0]
			}
			nowhere := file == "/dev/null" || file == "nul" || file == "NUL"
			if r.N != nil && r.N.Value != "1" {
				at.silent = at.silent || nowhere || r.N.Value == "2"
				continue
			}
			at.hidden = file != "/dev/stdout" && file != "/dev/stderr" && file != "/dev/tty"
			at.adds = r.Op == syntax.AppOut || r.Op == syntax.AppAll
			at.silent = at.silent || r.Op == syntax.RdrAll || r.Op == syntax.AppAll
			if !strings.HasPrefix(file, "/dev/") && !nowhere {
				at.output = file
			}
		case syntax.DplOut:
			at.silent = at.silent || at.hidden && r.N != nil && r.N.Value == "2"
		case syntax.Hdoc, syntax.DashHdoc:
			at.script = heredoc(r)
			at.input = known(at.script)
		case syntax.WordHdoc:
			if words := literals([]*syntax.Word{r.Word}); len(words) == 1 {
				at.input = words[0] + "\n"
			}
		}
	}
	return at
}

// operations returns what all commands do. What they show counts only if it is clear which command shows what.
func (s *shell) operations() []fileop.Operation {
	s.fold()
	shows, files := 0, false
	for _, st := range s.steps {
		if st.op.Shows() {
			shows++
			files = files || st.op.Kind != fileop.Print
		}
	}
	keep := files && (shows == 1 || s.inOrder)
	var out []fileop.Operation
	for _, st := range s.steps {
		if s.branches {
			st.op = st.op.Uncertain()
		}
		if st.op.Kind != 0 && (keep || !st.op.Shows()) {
			out = append(out, st.op)
		}
	}
	return out
}

// fold joins each pipeline into one step.
func (s *shell) fold() {
	var out []step
	last := -1 // the step that showed something
	for _, st := range s.steps {
		kind := st.op.Kind
		shows := kind == 0 || st.op.Shows()
		switch {
		case !shows:
			out = append(out, st)
		case st.piped && last >= 0:
			out[last].op = pipe(out[last].op, st.op)
		default:
			last = len(out)
			if kind == fileop.Read && st.op.Path == "" {
				st.op = fileop.Operation{Kind: fileop.Print}
			}
			out = append(out, st)
		}
	}
	s.steps = out
}

// pipe returns what a command shows that reads the output of another one.
func pipe(from, to fileop.Operation) fileop.Operation {
	switch {
	case to.Kind == 0:
		return to
	case from.Kind == fileop.Read && to.Kind == fileop.Read && to.Path == "":
		if from.From > 0 && to.From > 0 {
			from.From += to.From - 1
		} else {
			from.From = 0
		}
		from.All = from.All && to.All
		if !to.All {
			from.Lines = to.Lines
		}
		return from
	case from.Kind == fileop.Search && to.Kind == fileop.Read && to.Path == "":
		return from
	case from.Kind == fileop.Read && from.From == 1 && to.Kind == fileop.Search && to.Path == "":
		return fileop.Operation{Kind: fileop.Search, Path: from.Path}
	}
	return fileop.Operation{Kind: fileop.Print}
}
