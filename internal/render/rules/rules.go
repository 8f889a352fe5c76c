package rules

import (
	"cmp"
	"fmt"
	"slices"
)

// Violation is a rule that the lines of a context break.
type Violation struct {
	// Line is the line's index among those checked, or -1 for the context as a whole.
	Line int
	// Rule names the rule as the package's documentation lists it.
	Rule string
	// What says what was found, and where in the line.
	What string
}

func (v Violation) String() string { return fmt.Sprintf("line %d: %s: %s", v.Line, v.Rule, v.What) }

// checkers are the formats that have rules.
var checkers = map[string]func(*report, [][]byte){
	"anthropic":        checkAnthropic,
	"gemini":           checkGemini,
	"openai_chat":      checkChat,
	"openai_responses": checkResponses,
}

// Check holds the lines of a context in a provider's format to the provider's rules.
// The lines are the messages in order, the system line first if there is one. It
// returns what it found, of the context as a whole and then by line; nothing if the
// context is valid. A format without rules is a violation.
func Check(format string, lines [][]byte) []Violation {
	r := &report{}
	check, ok := checkers[format]
	if !ok {
		r.add(-1, "format", "no rules for the format %q", format)
		return r.found
	}
	for i, line := range lines {
		r.canonical(i, line)
	}
	check(r, lines)
	slices.SortStableFunc(r.found, func(a, b Violation) int { return cmp.Compare(a.Line, b.Line) })
	return r.found
}

// report collects violations.
type report struct{ found []Violation }

func (r *report) add(line int, rule, format string, args ...any) {
	r.found = append(r.found, Violation{Line: line, Rule: rule, What: fmt.Sprintf(format, args...)})
}
