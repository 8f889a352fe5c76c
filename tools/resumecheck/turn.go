package main

import (
	"fmt"
	"strings"
)

// Kind says what a turn is.
type Kind string

// The kinds of turns.
const (
	Text     Kind = "text"
	Thinking Kind = "thinking"
	Call     Kind = "call"
	Result   Kind = "result"
	Media    Kind = "media"
	Other    Kind = "other"
)

// Turn is the smallest thing that a conversation is compared by: a text, a call, a
// result. How turns are put together to messages is each provider's own.
type Turn struct {
	Role string // "system", "user" or "assistant"; "" for results
	Kind Kind
	// ID is the call's, of calls and results.
	ID string
	// Name is the tool's, of calls.
	Name string
	// Body is the text, the arguments, the result, or what identifies the rest.
	Body string
	// Signature and Secret are the provider's seals of thinking: what signs the text, and
	// what replaces it where only the provider can read it.
	Signature, Secret string
	// Foreign is set on sealed thinking in the view that is of another model than the one
	// that spoke last.
	Foreign bool
	// Interrupted is set on results in the view that the log does not have; what they say
	// is contextd's.
	Interrupted bool
	// Seam is set on texts of a request after which the CLI may have put a line feed,
	// because it joined two messages there.
	Seam bool
	// Failed is set on results that are marked as errors.
	Failed bool
}

// String shows the turn on one line.
func (t Turn) String() string {
	parts := []string{string(t.Kind)}
	for _, p := range []string{t.Role, t.ID, t.Name} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if t.Failed {
		parts = append(parts, "failed")
	}
	if t.Signature+t.Secret != "" {
		parts = append(parts, "sealed "+shorten(t.Signature+t.Secret, 20))
	}
	return fmt.Sprintf("%s %s", strings.Join(parts, " "), shorten(t.Body, 160))
}

// shorten quotes the head and the tail of a text.
func shorten(s string, most int) string {
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q…%q (%d bytes)", s[:most/2], s[len(s)-most/2:], len(s))
}
