package shell

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

var (
	// linesRange matches the script with which sed shows lines.
	linesRange = regexp.MustCompile(`^(\d+)(?:,(\+?\d+|\$))?p$`)
	number     = regexp.MustCompile(`^\+?\d+$`)
	// count matches a flag of head and tail with a number of lines.
	count = regexp.MustCompile(`^(?:-n|--lines=|-n=|-)(\+?\d+)$`)
)

// reader returns the file that a command shows, and from which line. Path is empty if it shows lines of its
// input.
func reader(words []string) (fileop.Operation, bool) {
	op := fileop.Operation{Kind: fileop.Read, From: 1}
	operands := operandsOf(words)
	switch program := path.Base(words[0]); program {
	case "cat", "nl", "bat", "batcat":
		op.All = true
	case "head", "tail":
		lines := "10"
		for i, w := range words[1:] {
			switch m := count.FindStringSubmatch(w); {
			case w == "-c" || w == "-f" || w == "-F" || strings.HasPrefix(w, "--bytes") || strings.HasPrefix(w, "-n-"):
				return op, false
			case m != nil:
				lines = m[1]
			case w == "-n" && i+2 < len(words):
				lines = words[i+2]
			}
		}
		if len(operands) > 0 && number.MatchString(operands[0]) { // head -n 20 FILE
			lines, operands = operands[0], operands[1:]
		}
		n, _ := strconv.Atoi(strings.TrimPrefix(lines, "+")) // what is none says nothing
		switch {
		case program == "head":
			op.Lines = max(n, 0)
		case strings.HasPrefix(lines, "+"):
			op.From = max(n, 1)
		default:
			op.From = 0
		}
	case "sed":
		if len(operands) == 0 {
			return op, false
		}
		m := linesRange.FindStringSubmatch(operands[0])
		if m == nil || !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") && strings.Contains(w, "n") }) {
			return op, false
		}
		op.From, _ = strconv.Atoi(m[1])
		op.From = max(op.From, 1)
		op.Lines = linesOf(op.From, m[2])
		operands = operands[1:]
	case "rg", "grep", "egrep":
		op = fileop.Operation{Kind: fileop.Search}
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
	if len(operands) == 1 && operands[0] != "-" {
		op.Path = operands[0]
	}
	return op, true
}

// linesOf returns the length of a range of lines that begins at a line; 0 is unknown.
func linesOf(from int, end string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(end, "+"))
	switch {
	case end == "":
		return 1
	case err != nil:
		return 0
	case strings.HasPrefix(end, "+"):
		return n + 1
	}
	return max(n-from+1, 1)
}

// operandsOf returns the arguments that are not flags.
func operandsOf(words []string) []string {
	var out []string
	for i, w := range words[1:] {
		if w == "--" {
			return append(out, words[i+2:]...)
		}
		if !strings.HasPrefix(w, "-") || w == "-" {
			out = append(out, w)
		}
	}
	return out
}
