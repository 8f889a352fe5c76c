package harnesstest

import (
	"fmt"
	"strings"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Dimensions are what Facts tells of a session, in the order of importance.
var Dimensions = []string{
	"turns", "roles", "text", "calls", "inputs", "results", "errors", "thinking", "media", "models", "usage",
	"boundaries", "triggers", "summaries", "kept", "parents",
}

// Facts are what a session says, by dimension, without regard to how a harness
// splits messages into entries: the parts of one reply stand together.
type Facts map[string][]string

// FactsOf reads the facts of a session.
func FactsOf(s transcript.Session) Facts {
	f := Facts{}
	regrouped := regroup(s.Events)
	blocks := 0
	// span are the positions of an event's blocks.
	span := map[string][]string{}
	group, grouped := "", false
	for _, e := range regrouped {
		switch b := e.Body.(type) {
		case *eventlog.Message:
			for i := range b.Blocks {
				span[e.ID] = append(span[e.ID], fmt.Sprint(blocks+i))
			}
			if b.Role == eventlog.RoleAssistant {
				if !grouped || b.GroupID == "" || b.GroupID != group {
					f.add("turns", "turn")
					if b.Model != "" {
						f.add("models", b.Model)
					}
				}
				group, grouped = b.GroupID, true
			} else if b.Role != eventlog.RoleTool {
				grouped = false
			}
			blocks += len(b.Blocks)
			f.message(b)
		case *eventlog.Compaction:
			grouped = false
			f.add("boundaries", fmt.Sprint(blocks))
			f.add("triggers", fmt.Sprint(b.Trigger))
			f.add("summaries", b.Summary)
			var kept []string
			for _, id := range b.KeptEventIDs {
				kept = append(kept, span[id]...)
			}
			f.add("kept", strings.Join(kept, " "))
		}
	}
	for _, u := range usageOf(regrouped) {
		f.add("usage", u)
	}
	if s.ParentCallID != "" {
		f.add("parents", s.ParentCallID)
	}
	return f
}

func (f Facts) add(dimension, fact string) { f[dimension] = append(f[dimension], fact) }

func (f Facts) message(m *eventlog.Message) {
	for _, b := range m.Blocks {
		role := m.Role
		switch b := b.(type) {
		case eventlog.Text:
			f.add("text", role.String()+" "+b.Text)
		case eventlog.ToolCall:
			f.add("calls", b.CallID+" "+b.Name)
			f.add("inputs", b.Arguments)
		case eventlog.ToolResult:
			role = eventlog.RoleTool
			f.add("results", b.CallID+" "+resultText(b))
			f.add("errors", fmt.Sprint(b.IsError))
			f.media(b.Content)
		case eventlog.Thinking:
			f.add("thinking", fmt.Sprintf("%q", b))
		}
		f.add("roles", role.String())
	}
	f.media(m.Blocks)
}

func (f Facts) media(blocks []eventlog.Block) {
	for _, b := range blocks {
		if m, ok := b.(eventlog.Media); ok {
			f.add("media", fmt.Sprintf("%s %s %x", m.MIMEType, m.URI, m.Data))
		}
	}
}

func resultText(r eventlog.ToolResult) string {
	var parts []string
	for _, b := range r.Content {
		switch b := b.(type) {
		case eventlog.Text:
			parts = append(parts, b.Text)
		case eventlog.ProviderBlock:
			parts = append(parts, b.JSON)
		}
	}
	return strings.Join(parts, "\n")
}

// usageOf gives one line per model call: the last event of it that counts.
func usageOf(events []eventlog.Event) []string {
	var all []string
	at := map[string]int{}
	for _, e := range events {
		if e.Labels[transcript.LabelPromptTokens] == "" {
			continue
		}
		m, ok := e.Body.(*eventlog.Message)
		if !ok { // a count behind the reply
			m = &eventlog.Message{}
		}
		u := fmt.Sprint(e.Labels[transcript.LabelPromptTokens], " ", e.Labels[transcript.LabelCacheReadTokens], " ", e.Labels[transcript.LabelOutputTokens])
		if i, seen := at[m.GroupID]; seen && m.GroupID != "" {
			all[i] = u
			continue
		}
		at[m.GroupID] = len(all)
		all = append(all, u)
	}
	return all
}

// regroup puts the parts of a reply together where its first part stands; what
// stood between them follows.
func regroup(events []eventlog.Event) []eventlog.Event {
	out := make([]eventlog.Event, 0, len(events))
	taken := make([]bool, len(events))
	byGroup := map[string][]int{}
	for i, e := range events {
		if m, ok := e.Body.(*eventlog.Message); ok && m.Role == eventlog.RoleAssistant && m.GroupID != "" {
			byGroup[m.GroupID] = append(byGroup[m.GroupID], i)
		}
	}
	for i, e := range events {
		if taken[i] {
			continue
		}
		out = append(out, e)
		m, ok := e.Body.(*eventlog.Message)
		if !ok || m.Role != eventlog.RoleAssistant {
			continue
		}
		for _, j := range byGroup[m.GroupID] {
			if j > i && !taken[j] {
				out = append(out, events[j])
				taken[j] = true
			}
		}
	}
	return out
}
