package harness

import (
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// labelSummary is "true" on a message with the summary of the compaction before it.
const labelSummary = "harness.summary"

// standingSummary is the standing name of such a message: a newer one replaces it.
const standingSummary = "summary"

// Summarizes reports whether an event is the message that withPast made of the summary of a compaction.
func Summarizes(e, compaction eventlog.Event) bool {
	return e.Labels[labelSummary] == "true" && e.ID == pastID(compaction.ID)
}

func pastID(compaction string) string { return compaction + "/past" }

// withPast adds a message with the summary after each compaction at the beginning of a session. Without it a context
// would have nothing of the replaced messages, because the file has only their summary, and contexts do not show
// compaction events.
func withPast(events []eventlog.Event) []eventlog.Event {
	var out []eventlog.Event
	from := 0
	for i, e := range events {
		c, ok := e.Body.(*eventlog.Compaction)
		if !ok && speaks(e) {
			break
		}
		if !ok {
			continue
		}
		if blocks := BoundaryOf(c).Blocks; len(blocks) > 0 {
			out = append(append(out, events[from:i+1]...), pastOf(e, blocks))
			from = i + 1
		}
	}
	if out == nil {
		return events
	}
	return append(out, events[from:]...)
}

// speaks reports whether an event belongs to the conversation that the file has in full. System messages do not, nor
// do messages that the harness inserted or that a compaction lists.
func speaks(e eventlog.Event) bool {
	m, ok := e.Body.(*eventlog.Message)
	return ok && m.Role != eventlog.RoleSystem && !e.Injected() && e.Labels[transcript.LabelReplaced] == ""
}

func pastOf(compaction eventlog.Event, blocks []eventlog.Block) eventlog.Event {
	return eventlog.Event{
		ID: pastID(compaction.ID), Time: compaction.Time,
		Labels: map[string]string{
			transcript.LabelInjected: "true", transcript.LabelStanding: standingSummary, labelSummary: "true",
		},
		Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: blocks},
	}
}

// withoutPast removes the messages that withPast added, because every harness's file has the summary in the
// compaction. A later compaction that kept such a message gets its text in its own summary. If the session is
// not the harness's own, messages before the last such summary are moved after it, so that the new file
// begins with the compaction too.
func withoutPast(events []eventlog.Event, own bool) []eventlog.Event {
	past := map[string]string{}
	begins := 0
	for i, e := range events {
		if m, ok := e.Body.(*eventlog.Message); ok && e.Labels[labelSummary] == "true" {
			past[e.ID] = strings.Join(transcript.Texts(m.Blocks), "\n")
			begins = i
		}
	}
	if len(past) == 0 {
		return events
	}
	out := make([]eventlog.Event, 0, len(events))
	var moved []eventlog.Event
	for i, e := range events {
		switch b := e.Body.(type) {
		case *eventlog.Message:
			if _, added := past[e.ID]; added {
				break
			}
			if i < begins && !own && b.Role != eventlog.RoleSystem {
				past[e.ID] = "" // a compaction must not list it as kept if it is moved after that
				moved = append(moved, e)
				break
			}
			out = append(out, e)
		case *eventlog.Compaction:
			e.Body = withWords(b, past)
			out = append(out, e)
		default:
			out = append(out, e)
		}
		if i == begins {
			out = append(out, moved...)
			for _, e := range moved {
				delete(past, e.ID)
			}
		}
	}
	return out
}

// withWords returns the compaction without the ids of past in its kept events, and with their texts before its
// summary.
func withWords(c *eventlog.Compaction, past map[string]string) *eventlog.Compaction {
	kept := slices.DeleteFunc(slices.Clone(c.KeptEventIDs), func(id string) bool { _, ok := past[id]; return ok })
	if len(kept) == len(c.KeptEventIDs) {
		return c
	}
	var words []string
	for _, id := range c.KeptEventIDs {
		if text := past[id]; text != "" {
			words = append(words, text)
		}
	}
	if c.Summary != "" {
		words = append(words, c.Summary)
	}
	out := *c
	out.KeptEventIDs, out.Summary = kept, strings.Join(words, "\n\n")
	return &out
}
