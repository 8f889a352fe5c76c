package transcript

import (
	"maps"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// ReplyUsage returns the usage labels of each assistant message's event, by its
// position: the last ones of its reply, or those of the first custom event behind
// the reply that has some, as harnesses write them that count after the fact.
func ReplyUsage(events []eventlog.Event) map[int]map[string]string {
	usage := map[int]map[string]string{}
	var reply []int
	group, counted := "", false
	for i := range events {
		labels := usageLabels(events[i].Labels)
		m, ok := events[i].Body.(*eventlog.Message)
		if _, compaction := events[i].Body.(*eventlog.Compaction); compaction {
			labels = nil // what the summary took
		}
		if ok && m.Role == eventlog.RoleAssistant {
			if len(reply) == 0 || m.GroupID == "" || m.GroupID != group {
				reply, group, counted = nil, m.GroupID, false
			}
			reply = append(reply, i)
			if labels != nil {
				counted = true
			} else if counted {
				labels = usage[reply[len(reply)-2]]
			}
		} else if counted || len(reply) == 0 {
			continue
		} else if labels != nil {
			counted = true
		}
		if labels != nil {
			for _, at := range reply {
				usage[at] = labels
			}
		}
	}
	return usage
}

// AttributeUsage returns a transcript whose replies have their usage themselves: on
// the last event of a reply that has none, where it stands behind the reply.
func AttributeUsage(t Transcript) Transcript {
	sessions := make([]Session, len(t.Sessions))
	for i, s := range t.Sessions {
		sessions[i] = attribute(s)
	}
	t.Sessions = sessions
	return t
}

func attribute(s Session) Session {
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
