package main

import (
	"fmt"
	"strings"
)

// Kind is the kind of a turn.
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

// Turn is the smallest unit by which conversations are compared: a text, a call, a result. Providers combine
// them into messages in different ways.
type Turn struct {
	Role string // "system", "user" or "assistant"; "" for results
	Kind Kind
	// ID is the call's id, for calls and results.
	ID string
	// Name is the tool's name, for calls.
	Name string
	// Body is the text, the arguments or the result; for other kinds, what identifies the turn.
	Body string
	// Signature and Secret are the provider's seals of thinking: Signature signs the text, Secret replaces it
	// where only the provider can read it.
	Signature, Secret string
	// Foreign is set on sealed thinking in the view if another model wrote it than the one that spoke last.
	Foreign bool
	// Interrupted is set on results in the view that are not in the log, but were written by contextd.
	Interrupted bool
	// Seam is set on a text in a request if the CLI may have added a line feed after it to join two messages.
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
