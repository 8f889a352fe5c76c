package transcript

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Usage has the tokens that a provider counted for one request.
type Usage struct {
	// Prompt is the whole prompt, including the cached part.
	Prompt, CacheRead, CacheWrite, Output Count
}

// UsageOf reads the usage labels; an absent one is 0.
func UsageOf(labels map[string]string) Usage {
	number := func(label string) Count {
		n, err := strconv.ParseUint(labels[label], 10, 64)
		if err != nil {
			return 0
		}
		return Count(n)
	}
	return Usage{
		Prompt: number(LabelPromptTokens), CacheRead: number(LabelCacheReadTokens),
		CacheWrite: number(LabelCacheWriteTokens), Output: number(LabelOutputTokens),
	}
}

// Fresh returns the part of the prompt that was neither in the cache nor written to it.
func (u Usage) Fresh() Count { return u.Prompt - min(u.Prompt, u.CacheRead+u.CacheWrite) }

// Labels returns the usage labels, or nil if nothing was counted.
func (u Usage) Labels() map[string]string {
	if u.Prompt == 0 && u.Output == 0 {
		return nil
	}
	labels := map[string]string{
		LabelPromptTokens:    u.Prompt.String(),
		LabelCacheReadTokens: u.CacheRead.String(),
		LabelOutputTokens:    u.Output.String(),
	}
	if u.CacheWrite > 0 {
		labels[LabelCacheWriteTokens] = u.CacheWrite.String()
	}
	return labels
}

// ReplyUsage returns the usage labels for each assistant message, by the index of its event. They are the
// last ones within its reply. If the reply has none, they are those of the first custom event after it that
// has some: some harnesses write the counts afterwards.
func ReplyUsage(events []eventlog.Event) map[int]map[string]string {
	usage := map[int]map[string]string{}
	var reply []int
	var last map[string]string // of the reply
	group, counted := "", false
	end := func() {
		for _, at := range reply {
			if last != nil {
				usage[at] = last
			}
		}
		reply, last, counted = nil, nil, false
	}
	for i := range events {
		labels := usageLabels(events[i].Labels)
		m, ok := events[i].Body.(*eventlog.Message)
		if _, compaction := events[i].Body.(*eventlog.Compaction); compaction {
			labels = nil // the usage of the summary's request
		}
		switch {
		case ok && m.Role == eventlog.RoleAssistant:
			if len(reply) == 0 || m.GroupID == "" || m.GroupID != group {
				end()
				group = m.GroupID
			}
			reply = append(reply, i)
		case counted || len(reply) == 0:
			continue
		}
		if labels != nil {
			last, counted = labels, true
		}
	}
	end()
	return usage
}

func usageLabels(labels map[string]string) map[string]string {
	if labels[LabelPromptTokens] == "" {
		return nil
	}
	usage := map[string]string{}
	for k, v := range labels {
		if strings.HasPrefix(k, "usage.") {
			usage[k] = v
		}
	}
	return usage
}

// Gather returns a session in the order that writers of other harnesses need. The parts of a reply follow the first
// part directly, and the events that were between them come after. A reply's usage is on the reply itself. No part is
// moved across a boundary.
func Gather(s Session) Session {
	events := make([]eventlog.Event, 0, len(s.Events))
	for _, i := range Together(s.Events, func(*eventlog.Event) bool { return true }) {
		events = append(events, s.Events[i])
	}
	s.Events = events
	return withUsage(s)
}

// Together returns the indexes of the events in a new order: the parts of a reply follow the first of them
// directly, if gather is true for that one. No part is moved across a boundary.
func Together(events []eventlog.Event, gather func(*eventlog.Event) bool) []int {
	order := make([]int, 0, len(events))
	taken := make([]bool, len(events))
	for i := range events {
		if taken[i] {
			continue
		}
		order = append(order, i)
		if gather(&events[i]) {
			for _, j := range furtherParts(events, i) {
				order, taken[j] = append(order, j), true
			}
		}
	}
	return order
}

// furtherParts returns the indexes of the later events of the reply that begins at i.
func furtherParts(events []eventlog.Event, i int) (all []int) {
	m, ok := events[i].Body.(*eventlog.Message)
	if !ok || m.Role != eventlog.RoleAssistant || m.GroupID == "" {
		return nil
	}
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

// withUsage copies the usage labels from a custom event after a reply to the reply's last event, if that has
// none.
func withUsage(s Session) Session {
	counted := func(e eventlog.Event) bool {
		_, custom := e.Body.(*eventlog.Custom)
		return custom && e.Labels[LabelPromptTokens] != ""
	}
	if !slices.ContainsFunc(s.Events, counted) {
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
