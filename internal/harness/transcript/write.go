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

// Writer writes a transcript as one file, in the form of a harness's own files. It omits what the harness cannot
// store, with a warning. The same transcript and options give the same bytes.
type Writer func(w io.Writer, t Transcript, o WriteOptions) (WriteReport, error)

// WriteOptions give the values that a file needs and the transcript may not have.
type WriteOptions struct {
	// SessionID is the id of the main session in the file. Empty is the id in the transcript's labels, or else one
	// derived from its events.
	SessionID string
	// WorkingDirectory is used for sessions without a label for it. Empty is "/".
	WorkingDirectory string
}

// Directory returns the working directory for a session with these labels.
func (o WriteOptions) Directory(labels map[string]string) string {
	return cmp.Or(labels[LabelWorkingDirectory], o.WorkingDirectory, "/")
}

// WriteReport says what was written and what was lost.
type WriteReport struct {
	// Entries is how many of the harness's entries the file has.
	Entries int
	// Compactions is how many compactions the file has.
	Compactions int
	// Warnings say what the harness cannot store. Their lines are 0.
	Warnings []Warning
	// times counts the warnings by their text.
	times map[string]int
	// again is how many bytes were written again.
	again int
}

// mostAgain bounds the bytes that a file has again because compactions kept them: each of very many compactions may keep
// the same large message.
const mostAgain = 64 << 20

// Again reports whether a compaction's kept message may be written again, which takes so many bytes. It warns if not.
func (r *WriteReport) Again(bytes int) bool {
	if r.again += bytes; r.again <= mostAgain {
		return true
	}
	r.Warn("messages that compactions kept are omitted where they would be written again beyond %d MiB", mostAgain>>20)
	return false
}

// Warn adds a warning; repetitions are only counted.
func (r *WriteReport) Warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if r.times == nil {
		r.times = map[string]int{}
	}
	if r.times[text]++; r.times[text] == 1 {
		r.Warnings = append(r.Warnings, Warning{Message: text})
	}
}

// Amend applies the difference of an envelope to base, which the writer made of the event. If that fails, it returns
// base and warns.
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

// Lost adds a warning, by kind, about entries for which the harness has no place.
func (r *WriteReport) Lost(kinds Tally) {
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		r.Warn("the harness has no place for %s: %d left out", kind, kinds[kind])
	}
}

// Finish writes the whole file, and adds to each warning how often it occurred.
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

// Held returns the custom events with a whole entry of which only a part became another event, by the id of that
// event (see SessionBuilder.keep).
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

// Stamp returns a time in the form that several harnesses write; empty, and so omitted, for the zero time.
func Stamp(at time.Time) Optional {
	if at.IsZero() {
		return ""
	}
	return Optional(at.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// OrEpoch returns the time itself, or the Unix epoch for the zero time.
func OrEpoch(at time.Time) time.Time {
	if at.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return at
}

// Began returns the first time in a session's events; zero if they have none.
func Began(s Session) time.Time {
	for _, e := range s.Events {
		if !e.Time.IsZero() {
			return e.Time
		}
	}
	return time.Time{}
}

// Triggers are the names of compaction triggers in files of harnesses that have no names for them.
var Triggers = map[eventlog.CompactionTrigger]string{
	eventlog.TriggerUnspecified: "unspecified", eventlog.TriggerManual: "manual",
	eventlog.TriggerThreshold: "threshold", eventlog.TriggerBudgetPressure: "budget_pressure",
}

// Provenance has the facts about a compaction for which a harness has no fields. A writer adds them to the file.
type Provenance struct {
	Trigger  string `json:"trigger,omitzero"`
	Mode     string `json:"mode,omitzero"`
	Strategy string `json:"strategy,omitzero"`
}

// ProvenanceOf returns the provenance of a compaction, without a trigger if that is unspecified.
func ProvenanceOf(c *eventlog.Compaction) Provenance {
	t := Provenance{Mode: c.Mode, Strategy: c.Strategy}
	if c.Trigger != eventlog.TriggerUnspecified {
		t.Trigger = Triggers[c.Trigger]
	}
	return t
}

// Into sets the fields of a compaction from its provenance; an unknown trigger changes nothing.
func (t Provenance) Into(c *eventlog.Compaction) {
	for trigger, name := range Triggers {
		if name == t.Trigger {
			c.Trigger = trigger
		}
	}
	c.Mode, c.Strategy = t.Mode, t.Strategy
}

// Kept says which of the messages before a compaction it kept, for a harness that can keep only a tail of them.
type Kept struct {
	Sent []string // ids of the kept messages, in order
	Tail string   // id of the tail's first message; empty if there is none
	// More says that messages outside the tail were kept, too, or that the tail begins earlier than the harness
	// permits.
	More bool
}

// KeptOf finds the tail of sent that was kept; kept are the indexes in sent, in any order and perhaps repeated. The
// harness permits a tail that begins at index since or later.
func KeptOf(sent []string, since int, kept []int) (k Kept) {
	slices.Sort(kept)
	kept = slices.Compact(kept)
	tail, more := len(sent), len(kept)
	for more > 0 && kept[more-1] == tail-1 {
		tail, more = tail-1, more-1
	}
	if tail < len(sent) {
		k.Tail = sent[tail]
	}
	k.More = more > 0 || k.Tail != "" && tail < since
	for _, i := range kept {
		k.Sent = append(k.Sent, sent[i])
	}
	return k
}

// Own reports whether a custom event has an entry of the harness, or an entry's envelope.
func Own(harness string, c *eventlog.Custom) bool {
	return strings.HasPrefix(c.Type, CustomType(harness, "")) || strings.HasPrefix(c.Type, harness+".")
}

// namespace is the namespace of the UUIDs that writers make.
var namespace = uuid.MustParse("8f9b1c52-6a0e-5d7c-9a55-2f1f0f3d7e41")

// UUID derives an id from parts: equal parts give equal ids.
func UUID(parts ...string) string {
	return uuid.NewSHA1(namespace, []byte(strings.Join(parts, "\x00"))).String()
}

// IsUUID reports whether an id has the form of a UUID.
func IsUUID(id string) bool { return len(id) == 36 && uuid.Validate(id) == nil }

// SessionID derives an id for a session that has none from the ids of its events.
func SessionID(s Session) string {
	parts := make([]string, 0, len(s.Events)+1)
	parts = append(parts, "session")
	for _, e := range s.Events {
		parts = append(parts, e.ID)
	}
	return UUID(parts...)
}
