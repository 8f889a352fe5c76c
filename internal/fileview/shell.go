package fileview

import (
	"regexp"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// commands are the files that a shell command shows, where it shows nothing else: the output
// of two commands in a row cannot be separated.
func commands(script string) []Operation {
	if len(script) > longestScript {
		return nil
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return nil
	}
	var out []Operation
	shows := 0
	syntax.Walk(file, func(node syntax.Node) bool {
		if call, ok := node.(*syntax.CallExpr); ok {
			words := literals(call.Args)
			if len(words) == 0 || words[0] == "cd" || words[0] == "set" {
				return true
			}
			if op, ok := shown(words); ok {
				out = append(out, op)
			}
			shows++
		}
		return true
	})
	if pipe := shows == 2 && len(out) > 0; shows > 1 && !pipe {
		return nil
	}
	return piped(out)
}

// longestScript is above what a command that shows a file has, in bytes.
const longestScript = 4 << 10

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

// linesRange is the script by which sed shows lines.
var linesRange = regexp.MustCompile(`^(\d+)(?:,[\d$+]+)?p$`)

// shown is the file that a command shows, and from which line. Path is empty where it shows
// lines of what is piped to it.
func shown(words []string) (Operation, bool) {
	op := Operation{Kind: Read, From: 1}
	var operands []string
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") || w == "-" {
			operands = append(operands, w)
		}
	}
	switch words[0] {
	case "cat", "nl", "bat":
	case "head":
		if len(operands) > 1 { // head -n 20 FILE
			operands = operands[len(operands)-1:]
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

// piped joins a file and the lines of it that a second command shows.
func piped(ops []Operation) []Operation {
	switch {
	case len(ops) == 1 && ops[0].Path != "":
		return ops
	case len(ops) == 2 && ops[0].Path != "" && ops[1].Path == "":
		ops[0].From = ops[1].From
		return ops[:1]
	default:
		return nil
	}
}
