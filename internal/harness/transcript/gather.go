package transcript

import (
	"maps"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Gather returns a session as writers of other harnesses take it best: the parts of
// a reply are together, where the first of them was, what was between them after them, and
// a reply's usage on the reply itself. No part passes a boundary.
func Gather(s Session) Session {
	order := make([]eventlog.Event, 0, len(s.Events))
	taken := make([]bool, len(s.Events))
	for i, e := range s.Events {
		if taken[i] {
			continue
		}
		order = append(order, e)
		for _, j := range parts(s.Events, i) {
			order = append(order, s.Events[j])
			taken[j] = true
		}
	}
	s.Events = order
	return withUsage(s)
}

// parts are the further events of the reply that begins at i.
func parts(events []eventlog.Event, i int) []int {
	m, ok := events[i].Body.(*eventlog.Message)
	if !ok || m.Role != eventlog.RoleAssistant || m.GroupID == "" {
		return nil
	}
	var all []int
	for j := i + 1; j < len(events); j++ {
		if _, boundary := events[j].Body.(*eventlog.Compaction); boundary {
			break
		}
		next, ok := events[j].Body.(*eventlog.Message)
		if !ok || next.Role != eventlog.RoleAssistant {
			continue
		}
		if next.GroupID != m.GroupID {
			break
		}
		all = append(all, j)
	}
	return all
}

// withUsage puts on the last event of a reply that has none what a count after it
// says.
func withUsage(s Session) Session {
	behind := func(e eventlog.Event) bool {
		_, custom := e.Body.(*eventlog.Custom)
		return custom && e.Labels[LabelPromptTokens] != ""
	}
	if !slices.ContainsFunc(s.Events, behind) {
		return s
	}
	usage := ReplyUsage(s.Events)
	s.Events = slices.Clone(s.Events)
	group, seen := "", false
	for i := len(s.Events) - 1; i >= 0; i-- {
		m, ok := s.Events[i].Body.(*eventlog.Message)
		if !ok || m.Role != eventlog.RoleAssistant {
			continue
		}
		last := !seen || m.GroupID == "" || m.GroupID != group
		group, seen = m.GroupID, true
		if e := &s.Events[i]; last && usage[i] != nil && e.Labels[LabelPromptTokens] == "" {
			labels := maps.Clone(usage[i])
			maps.Copy(labels, e.Labels)
			e.Labels = labels
		}
	}
	return s
}
