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

// Of holds the lines of a context to the rules of a format, by its name; nil where no provider has rules
// for it. The lines are the messages in order, the system line first if there is one. It returns what it
// found, of the context as a whole and then by line; nothing if the context is valid.
func Of(format string) func(lines [][]byte) []Violation {
	check, ok := checks[format]
	if !ok {
		return nil
	}
	return func(lines [][]byte) []Violation { return checked(&report{}, lines, check) }
}

// OfReturning is Of for the APIs that take one of these formats and want the reasoning of each message of the assistant back
// as text.
func OfReturning(format string) func(lines [][]byte) []Violation {
	check, ok := checks[format]
	if !ok {
		return nil
	}
	return func(lines [][]byte) []Violation { return checked(&report{returning: true}, lines, check) }
}

var checks = map[string]func(*report, [][]byte){
	"anthropic": checkAnthropic, "gemini": checkGemini, "openai_chat": checkChat, "openai_responses": checkResponses,
}

func checked(r *report, lines [][]byte, check func(*report, [][]byte)) []Violation {
	for i, line := range lines {
		r.canonical(i, line)
	}
	check(r, lines)
	slices.SortStableFunc(r.found, func(a, b Violation) int { return cmp.Compare(a.Line, b.Line) })
	return r.found
}

// report collects violations.
type report struct {
	found []Violation
	// images counts them, where a format has a limit.
	images int
	// returning is set where reasoning must be returned.
	returning bool
}

func (r *report) add(line int, rule, format string, args ...any) {
	r.found = append(r.found, Violation{Line: line, Rule: rule, What: fmt.Sprintf(format, args...)})
}
