package transcript

import (
	"strconv"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Usage is what a provider counted for one request.
type Usage struct {
	// Prompt is the whole prompt, the cached part included.
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

// Fresh is the part of the prompt that was neither in the cache nor written to it.
func (u Usage) Fresh() Count { return u.Prompt - min(u.Prompt, u.CacheRead+u.CacheWrite) }

// Labels gives the usage labels, or nil if nothing was counted.
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

// ReplyUsage returns the usage labels of each assistant message's event, by its
// position: the last ones of its reply, or those of the first custom event after
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
		switch {
		case ok && m.Role == eventlog.RoleAssistant:
			if len(reply) == 0 || m.GroupID == "" || m.GroupID != group {
				reply, group, counted = nil, m.GroupID, false
			}
			reply = append(reply, i)
			if labels != nil {
				counted = true
			} else if counted {
				labels = usage[reply[len(reply)-2]]
			}
		case counted || len(reply) == 0:
			continue
		case labels != nil:
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
