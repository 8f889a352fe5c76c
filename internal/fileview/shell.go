package fileview

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// longestScript is above what a command that shows a file has, in bytes.
const longestScript = 4 << 10

// commands are what the words of a command do, or what a script does where the argument is one.
func (a arguments) commands(name string) []Operation {
	var words []string
	if json.Unmarshal(a[name], &words) != nil {
		return commands(a.text(name))
	}
	switch {
	case len(words) == 0:
		return nil
	case len(words) > 1 && appliers[path.Base(words[0])]:
		return patches(strings.Join(words[1:], "\n"))
	case len(words) == 1, slices.ContainsFunc(words, func(w string) bool { return shellFlag.MatchString(w) }):
		return commands(words[len(words)-1]) // of a shell's arguments, the script is the last
	}
	var s shell
	s.call(words)
	return slices.Concat(s.changed, s.shown())
}

// appliers are the programs that are given a patch that begins *** Begin Patch.
var appliers = map[string]bool{"apply_patch": true, "applypatch": true}

// shellFlag is how a shell is told that a script follows.
var shellFlag = regexp.MustCompile(`^(?:-[a-z]{0,4}c|/c|(?i:-command))$`)

// commands are what a shell command does to files. What it shows counts only where it shows
// nothing else: the output of two commands in a row cannot be separated.
func commands(script string) []Operation {
	if strings.Contains(script, "apply") || strings.Contains(script, "patch") {
		if found := patches(script); len(found) > 0 && applied(script) {
			return found
		}
	}
	if len(script) > longestScript && !strings.Contains(script, "<<") {
		return nil
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return nil
	}
	var s shell
	syntax.Walk(file, func(node syntax.Node) bool {
		if stmt, ok := node.(*syntax.Stmt); ok {
			s.take(stmt)
		}
		return true
	})
	return slices.Concat(s.changed, s.shown())
}

// applied reports whether a command says that it applies the patch in it.
func applied(script string) bool {
	return strings.Contains(script, "apply_patch") || strings.Contains(script, "applypatch") || strings.Contains(script, "git apply") || strings.Contains(script, "patch -p")
}

// shell gathers what the commands of a script do.
type shell struct {
	changed []Operation
	// readers are the commands that show something, and steps how many those are that are not
	// known to show nothing.
	readers []Operation
	steps   int
}

// take takes in a statement.
func (s *shell) take(stmt *syntax.Stmt) {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok {
		return
	}
	words := literals(call.Args)
	if len(words) == 0 {
		s.steps++
		return
	}
	if words[0] == "cat" {
		if op, ok := heredoc(stmt); ok {
			s.changed = append(s.changed, op)
			return
		}
	}
	s.call(words)
}

// call takes in a command of these words.
func (s *shell) call(words []string) {
	switch words[0] {
	case "cd", "set", "export":
		return
	case "sed", "perl":
		if slices.ContainsFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-i") }) {
			s.changed = append(s.changed, Operation{Kind: Change, Path: words[len(words)-1]})
			return
		}
	}
	s.steps++
	if op, ok := reader(words); ok {
		s.readers = append(s.readers, op)
	}
}

// heredoc is the file that a statement writes a text to.
func heredoc(stmt *syntax.Stmt) (Operation, bool) {
	op := Operation{Kind: Write}
	for _, r := range stmt.Redirs {
		switch r.Op {
		case syntax.RdrOut, syntax.RdrClob:
			if words := literals([]*syntax.Word{r.Word}); len(words) == 1 {
				op.Path = words[0]
			}
		case syntax.Hdoc, syntax.DashHdoc:
			if r.Hdoc != nil {
				if words := literals([]*syntax.Word{r.Hdoc}); len(words) == 1 {
					op.New = words[0]
				}
			}
		}
	}
	return op, op.Path != "" && op.New != ""
}

// shown is the file that the script shows, or the lines of it that a second command shows.
func (s *shell) shown() []Operation {
	switch r := s.readers; {
	case s.steps == 1 && len(r) == 1 && (r[0].Path != "" || r[0].Kind == Search):
		return r
	case s.steps == 2 && len(r) == 2 && (r[0].Path != "" || r[0].Kind == Search) && r[1].Path == "" && r[1].Kind == Read:
		if r[0].Kind == Read {
			r[0].From, r[0].All = r[1].From, false
		}
		return r[:1]
	default:
		return nil
	}
}

// literals are words without expansions; none where there is one with.
func literals(words []*syntax.Word) []string {
	var out []string
	for _, w := range words {
		var text strings.Builder
		for _, part := range w.Parts {
			switch part := part.(type) {
			case *syntax.Lit:
				text.WriteString(part.Value)
			case *syntax.SglQuoted:
				text.WriteString(part.Value)
			case *syntax.DblQuoted:
				for _, inner := range part.Parts {
					lit, ok := inner.(*syntax.Lit)
					if !ok {
						return nil
					}
					text.WriteString(lit.Value)
				}
			default:
				return nil
			}
		}
		out = append(out, text.String())
	}
	return out
}

var (
	// linesRange is the script by which sed shows lines.
	linesRange = regexp.MustCompile(`^(\d+)(?:,[\d$+]+)?p$`)
	number     = regexp.MustCompile(`^\+?\d+$`)
)

// reader is the file that a command shows, and from which line. Path is empty where it shows
// lines of what is piped to it.
func reader(words []string) (Operation, bool) {
	op := Operation{Kind: Read, From: 1}
	var operands []string
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") || w == "-" {
			operands = append(operands, w)
		}
	}
	switch words[0] {
	case "cat", "nl", "bat":
		op.All = true
	case "head":
		if len(operands) > 0 && number.MatchString(operands[0]) { // head -n 20 FILE
			operands = operands[1:]
		}
	case "sed":
		if len(operands) == 0 {
			return op, false
		}
		m := linesRange.FindStringSubmatch(operands[0])
		if m == nil {
			return op, false
		}
		op.From, _ = strconv.Atoi(m[1])
		operands = operands[1:]
	case "rg", "grep":
		op = Operation{Kind: Search}
		if len(operands) == 2 && strings.Contains(operands[1], ".") {
			op.Path = operands[1]
		}
		return op, slices.ContainsFunc(words[1:], func(w string) bool {
			return w == "--line-number" || strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.Contains(w, "n")
		})
	default:
		return op, false
	}
	if len(operands) > 1 {
		return op, false
	}
	if len(operands) == 1 {
		op.Path = operands[0]
	}
	return op, true
}
