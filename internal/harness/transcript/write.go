package transcript

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

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

// Amend is what a writer makes of an entry with what was kept of it besides, if that fits.
func (r *WriteReport) Amend(base []byte, difference string) jsontext.Value {
	if difference == "" {
		return base
	}
	raw, err := Amend(base, []byte(difference))
	if err != nil {
		r.Warn("what was kept of an entry does not fit it and is left out: %v", err)
		return base
	}
	return raw
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

// Held are the custom events that hold a whole entry of the harness of which another event is
// a part, by the id of that one.
func Held(harness string, events []eventlog.Event) map[string]*eventlog.Custom {
	all := map[string]*eventlog.Custom{}
	for i := range events {
		if c, ok := events[i].Body.(*eventlog.Custom); ok {
			kind, own := strings.CutPrefix(c.Type, harness+".")
			if id, held := strings.CutSuffix(strings.TrimRight(events[i].ID, "+"), "/"+kind); own && held {
				all[id] = c
			}
		}
	}
	return all
}

// Stamp is a time as several harnesses write it; it is left out if it is zero.
func Stamp(at time.Time) Optional {
	if at.IsZero() {
		return ""
	}
	return Optional(at.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// OrEpoch is a time, or the first one there is where the log has none.
func OrEpoch(at time.Time) time.Time {
	if at.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return at
}

// Began is the first time of a session's events; zero if there is none.
func Began(s Session) time.Time {
	for _, e := range s.Events {
		if !e.Time.IsZero() {
			return e.Time
		}
	}
	return time.Time{}
}

// Triggers are the names that contextd gives the triggers of compactions in files of
// harnesses that have none.
var Triggers = map[eventlog.CompactionTrigger]string{
	eventlog.TriggerUnspecified: "unspecified", eventlog.TriggerManual: "manual",
	eventlog.TriggerThreshold: "threshold", eventlog.TriggerBudgetPressure: "budget_pressure",
}

// Provenance is what contextd notes of a compaction in the file of a harness that has no place for it.
type Provenance struct {
	Trigger  string `json:"trigger,omitzero"`
	Mode     string `json:"mode,omitzero"`
	Strategy string `json:"strategy,omitzero"`
}

// ProvenanceOf notes it; no trigger is none.
func ProvenanceOf(c *eventlog.Compaction) Provenance {
	t := Provenance{Mode: c.Mode, Strategy: c.Strategy}
	if c.Trigger != eventlog.TriggerUnspecified {
		t.Trigger = Triggers[c.Trigger]
	}
	return t
}

// Into gives the compaction what was noted; an unknown trigger changes none.
func (t Provenance) Into(c *eventlog.Compaction) {
	for trigger, name := range Triggers {
		if name == t.Trigger {
			c.Trigger = trigger
		}
	}
	c.Mode, c.Strategy = t.Mode, t.Strategy
}

// Kept is what a compaction kept of what was sent before it, for a harness that keeps a tail.
type Kept struct {
	Sent []string // in order
	Tail string   // what the tail begins with; empty if there is none
	// More says that it is more than a tail, or that the tail reaches further back than it may.
	More bool
}

// KeptOf finds the tail of sent that was kept, which may hold what was sent from since on.
func KeptOf(sent []string, since int, kept func(string) bool) (k Kept) {
	tail := len(sent)
	for tail > 0 && kept(sent[tail-1]) {
		tail--
	}
	if tail < len(sent) {
		k.Tail, k.More = sent[tail], tail < since
	}
	for i, id := range sent {
		if kept(id) {
			k.Sent, k.More = append(k.Sent, id), k.More || i < tail
		}
	}
	return k
}

// Own reports whether a custom event holds an entry of the harness, or what its reader kept
// of one.
func Own(harness string, c *eventlog.Custom) bool {
	return strings.HasPrefix(c.Type, CustomType(harness, "")) || strings.HasPrefix(c.Type, harness+".")
}

// names is the namespace of the ids that writers make.
var names = uuid.MustParse("8f9b1c52-6a0e-5d7c-9a55-2f1f0f3d7e41")

// UUID makes an id from parts, the same for the same parts.
func UUID(parts ...string) string {
	return uuid.NewSHA1(names, []byte(strings.Join(parts, "\x00"))).String()
}

// IsUUID reports whether an id has the form of one.
func IsUUID(id string) bool { return len(id) == 36 && uuid.Validate(id) == nil }

// SessionID makes an id for a session that has none, from the ids of its events.
func SessionID(s Session) string {
	parts := make([]string, 0, len(s.Events)+1)
	parts = append(parts, "session")
	for _, e := range s.Events {
		parts = append(parts, e.ID)
	}
	return UUID(parts...)
}
