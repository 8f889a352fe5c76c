package harness_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// dimensions are the aspects in which sessions are compared. Positions and turns count texts, calls and
// results only: some harnesses cannot keep the thinking of others, or system messages. Results are in the
// order of their calls. inputs are compared without the whitespace between tokens; spaces are the inputs that
// have such whitespace.
var dimensions = []string{
	"system", "turns", "roles", "text", "calls", "inputs", "spaces", "results", "errors", "thinking", "signatures", "media",
	"models", "usage", "boundaries", "triggers", "summaries", "kept", "parents",
}

// facts are what a transcript says, by dimension. The parts of a reply are joined, because harnesses split
// messages into entries in different ways.
type facts map[string][]string

// factsOf reads the facts of a transcript's first session, and which calls began
// the others.
func factsOf(tr transcript.Transcript) facts {
	r := &factReader{facts: facts{}, span: map[string][]int{}, results: map[string]eventlog.ToolResult{}}
	if len(tr.Sessions) == 0 {
		return r.facts
	}
	events := tr.Sessions[0].Events
	for _, i := range transcript.Together(events, func(*eventlog.Event) bool { return true }) {
		r.event(events[i])
	}
	for _, id := range r.calls {
		if result, ok := r.results[id]; ok {
			r.add("results", id+" "+resultText(result))
			r.add("errors", fmt.Sprint(result.IsError))
			for _, c := range result.Content {
				r.media(c)
			}
		}
	}
	for _, s := range tr.Sessions[1:] {
		if s.ParentCallID != "" {
			r.add("parents", s.ParentCallID)
		}
	}
	return r.facts
}

type factReader struct {
	facts facts
	// said counts the blocks so far, and span says which ones are an event's.
	said int
	span map[string][]int
	// calls are in their order, and results by their ids.
	calls   []string
	results map[string]eventlog.ToolResult
	// group is the reply whose blocks are being read, if speaking is set.
	group    string
	speaking bool
	// counted is the group whose usage comes last.
	counted string
}

func (r *factReader) add(dimension, fact string) {
	r.facts[dimension] = append(r.facts[dimension], fact)
}

func (r *factReader) event(e eventlog.Event) {
	switch b := e.Body.(type) {
	case *eventlog.Message:
		r.message(e.ID, b)
		if r.speaking && r.group == replyOf(e.ID, b) {
			r.usage(e, b.GroupID)
		}
	case *eventlog.Compaction:
		r.speaking = false
		r.add("boundaries", fmt.Sprint(r.said))
		r.add("triggers", fmt.Sprint(b.Trigger))
		r.add("summaries", b.Summary)
		var kept []int
		for _, id := range b.KeptEventIDs {
			kept = append(kept, r.span[id]...)
		}
		slices.Sort(kept)
		r.add("kept", fmt.Sprint(kept))
	case *eventlog.Custom:
		r.usage(e, "") // a count after the reply
	}
}

// usage records the last count of a reply that has content: some harnesses have no entry to keep the count of
// an empty one with.
func (r *factReader) usage(e eventlog.Event, group string) {
	if prompt := e.Labels[transcript.LabelPromptTokens]; prompt == "" || prompt == "0" {
		return
	}
	u := fmt.Sprint(e.Labels[transcript.LabelPromptTokens], " ", e.Labels[transcript.LabelCacheReadTokens], " ", e.Labels[transcript.LabelOutputTokens])
	if all := r.facts["usage"]; group != "" && group == r.counted {
		all[len(all)-1] = u
	} else {
		r.add("usage", u)
	}
	r.counted = group
}

func (r *factReader) message(id string, m *eventlog.Message) {
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case eventlog.Text:
			if m.Role == eventlog.RoleSystem {
				r.add("system", b.Text)
				continue
			}
			r.add("text", m.Role.String()+" "+b.Text)
		case eventlog.ToolCall:
			r.add("calls", b.CallID+" "+b.Name)
			r.add("inputs", transcript.Compact([]byte(b.Arguments)))
			if b.Arguments != transcript.Compact([]byte(b.Arguments)) {
				r.add("spaces", b.Arguments)
			}
			r.calls = append(r.calls, b.CallID)
		case eventlog.ToolResult:
			r.results[b.CallID] = b
		case eventlog.Media:
			r.media(b)
		case eventlog.Thinking:
			if b.Text != "" {
				r.add("thinking", b.Text)
			}
			if b.Sealed() {
				r.add("signatures", b.Signature+" "+b.RedactedData+" "+b.EncryptedContent)
			}
			continue
		default:
			continue
		}
		r.span[id] = append(r.span[id], r.said)
		r.said++
		r.speaks(id, m, b)
	}
}

// replyOf names the reply that an assistant's event is a part of.
func replyOf(event string, m *eventlog.Message) string {
	if m.GroupID == "" {
		return "event " + event
	}
	return "group " + m.GroupID
}

// speaks records the role of a block, and whether a reply begins with it.
func (r *factReader) speaks(id string, m *eventlog.Message, b eventlog.Block) {
	if _, ok := b.(eventlog.ToolResult); ok {
		r.add("roles", "tool")
		return
	}
	r.add("roles", m.Role.String())
	if m.Role != eventlog.RoleAssistant {
		r.speaking = false
		return
	}
	group := replyOf(id, m)
	if !r.speaking || group != r.group {
		r.add("turns", fmt.Sprint(len(r.facts["roles"])))
		if m.Model != "" {
			r.add("models", m.Model)
		}
	}
	r.group, r.speaking = group, true
}

func (r *factReader) media(b eventlog.Block) {
	if m, ok := b.(eventlog.Media); ok {
		r.add("media", fmt.Sprintf("%s %s %x", m.MIMEType, m.URI, m.Data))
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
