package harness

import (
	eventlog "github.com/contextd/contextd/internal/log"
)

// BoundaryOf says how the harness that wrote a compaction goes on after it: what the
// model reads is Blocks, the events that were kept, and what came since.
func BoundaryOf(c *eventlog.Compaction) Boundary {
	for _, h := range registry {
		if h.Boundary == nil {
			continue
		}
		if b, ok := h.Boundary(c); ok {
			return b
		}
	}
	if c.Summary == "" {
		return Boundary{}
	}
	return Boundary{Blocks: []eventlog.Block{eventlog.Text{Text: c.Summary}}}
}

// Seen reports whether the harness that wrote a message still shows it to a model.
func Seen(e eventlog.Event) bool {
	for i := range registry {
		if label := registry[i].LabelUnseen; label != "" && e.Labels[label] != "" {
			return false
		}
	}
	return true
}

// Left are the messages among the events, by id, that their harness shows to no model any
// more because it went on without them.
func Left(events []eventlog.Event) map[string]bool {
	for _, h := range registry {
		if h.Branches == nil {
			continue
		}
		if left := h.Branches.Left(events); left != nil {
			return left
		}
	}
	return nil
}

// Follows reports whether an event may change which messages before it are shown, its own apart:
// which are Left, or that a boundary shows what it says.
func Follows(e eventlog.Event) bool {
	for i := range registry {
		if b := registry[i].Branches; b != nil && b.Follows(e) {
			return true
		}
	}
	return e.Labels[labelSummary] == "true"
}
