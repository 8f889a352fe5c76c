package transcript

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Writer writes a transcript as a harness keeps it on disk: one file, whole. What
// the harness cannot hold is left out and reported, never silently. The same
// transcript and options give the same bytes.
type Writer func(w io.Writer, t Transcript, o WriteOptions) (WriteReport, error)

// WriteOptions say what a transcript does not.
type WriteOptions struct {
	// SessionID is the id that the file gives its main session. Empty: the one that
	// the transcript's labels hold, or one made from its events.
	SessionID string
	// WorkingDirectory is where no label says one. Empty: "/".
	WorkingDirectory string
}

// Directory is where a session ran, as far as its labels or the options say.
func (o WriteOptions) Directory(labels map[string]string) string {
	return cmp.Or(labels[LabelWorkingDirectory], o.WorkingDirectory, "/")
}

// WriteReport says what became of a transcript.
type WriteReport struct {
	// Entries is how many the file holds, in the harness's own sense.
	Entries int
	// Compactions is how many boundaries it holds.
	Compactions int
	// Warnings say what the harness cannot hold; their lines are 0.
	Warnings []Warning
	// times is how often each was given.
	times map[string]int
}

// Warn adds a warning; one that there is already is counted.
func (r *WriteReport) Warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if r.times == nil {
		r.times = map[string]int{}
	}
	if r.times[text]++; r.times[text] == 1 {
		r.Warnings = append(r.Warnings, Warning{Message: text})
	}
}

// Lost warns of what the harness has no place for, by kind.
func (r *WriteReport) Lost(kinds Tally) {
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		r.Warn("the harness has no place for %s: %d left out", kind, kinds[kind])
	}
}

// Finish writes a whole file, and says in the warnings how often each was given.
func (r *WriteReport) Finish(out io.Writer, file []byte) (WriteReport, error) {
	for i, w := range r.Warnings {
		if n := r.times[w.Message]; n > 1 {
			r.Warnings[i].Message = fmt.Sprintf("%s (%d times)", w.Message, n)
		}
	}
	r.times = nil
	if _, err := out.Write(file); err != nil {
		return *r, fmt.Errorf("write transcript: %w", err)
	}
	return *r, nil
}

// HeldBy recognises a custom event that holds a whole entry of the harness, of which the
// event with the id returned is a part.
func HeldBy(harness string, e *eventlog.Event) (id string, ok bool) {
	c, ok := e.Body.(*eventlog.Custom)
	if !ok {
		return "", false
	}
	kind, ok := strings.CutPrefix(c.Type, harness+".")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(strings.TrimRight(e.ID, "+"), "/"+kind)
}

// Own reports whether a custom event holds an entry of the harness, or what its reader kept
// of one.
func Own(harness string, c *eventlog.Custom) bool {
	return strings.HasPrefix(c.Type, CustomType(harness, "")) || strings.HasPrefix(c.Type, harness+".")
}
