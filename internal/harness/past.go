package harness

import (
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// labelSummary is "true" on a message that holds the summary of the compaction before it.
const labelSummary = "harness.summary"

// standingSummary is what such a message is about, until a newer one does.
const standingSummary = "summary"

// Summarizes reports whether an event is the message that holds the summary of a compaction
// with which its transcript begins.
func Summarizes(e, compaction eventlog.Event) bool {
	return e.Labels[labelSummary] == "true" && e.ID == pastID(compaction.ID)
}

func pastID(compaction string) string { return compaction + "/past" }

// withPast adds to the events of a session that begins with a compaction its summary as a
// message: a compaction is no part of a context, and of what it replaced nothing else is in
// the file.
func withPast(events []eventlog.Event) []eventlog.Event {
	var told []eventlog.Event
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
			told = append(append(told, events[from:i+1]...), pastOf(e, blocks))
			from = i + 1
		}
	}
	if told == nil {
		return events
	}
	return append(told, events[from:]...)
}

// speaks reports whether an event is of the conversation of which the file has all.
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

// withoutPast leaves out what withPast added: the file of every harness has it in the
// compaction. A later compaction that kept the message has its words in its summary. Where own
// is false, what comes before the compaction follows it, so that the file of another harness
// begins with it too.
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
	var behind []eventlog.Event
	for i, e := range events {
		switch b := e.Body.(type) {
		case *eventlog.Message:
			if _, left := past[e.ID]; left {
				break
			}
			if i < begins && !own && b.Role != eventlog.RoleSystem {
				past[e.ID] = "" // no compaction keeps what follows it
				behind = append(behind, e)
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
			out = append(out, behind...)
			for _, e := range behind {
				delete(past, e.ID)
			}
		}
	}
	return out
}

// withWords is the compaction without the messages that it kept, and with their words.
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
