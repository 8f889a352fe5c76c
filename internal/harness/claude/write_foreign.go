package claude

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// acceptable are the ids of calls that the API takes.
var acceptable = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// foreign writes a message that was not read from a record of the harness: a reply's blocks
// one a record, as the harness writes them.
func (s *sessionWriter) foreign(i int, e *eventlog.Event, m *eventlog.Message) {
	if m.Role == eventlog.RoleSystem {
		s.lost["system messages"]++
		return
	}
	blocks := s.speakable(m)
	if len(blocks) == 0 {
		return
	}
	parts := [][]eventlog.Block{blocks}
	if m.Role != eventlog.RoleUser {
		parts = parts[:0]
		for n := range blocks {
			parts = append(parts, blocks[n:n+1])
		}
	}
	event := *e
	event.Time = transcript.OrEpoch(s.at)
	message := *m
	if m.Role == eventlog.RoleAssistant {
		event.Labels = s.replyUsage(i)
		if message.GroupID == "" {
			message.GroupID = "msg_" + transcript.UUID(s.around.sessionID, e.ID, "message")
		}
	}
	for n, part := range parts {
		event.ID = s.uuid(e.ID, n)
		written, notes := s.accept(part)
		v := s.around.message(&event, &message, written, s.leaf())
		s.write(e.ID, s.linked(m, transcript.With(v, "contextd", notes)))
	}
}

// speakable are the blocks that the harness can say again.
func (s *sessionWriter) speakable(m *eventlog.Message) []eventlog.Block {
	var blocks []eventlog.Block
	for _, b := range m.Blocks {
		switch c := b.(type) {
		case eventlog.Thinking:
			// The API refuses what it did not sign.
			if !strings.Contains(m.Model, "claude") || (c.Signature == "" && c.RedactedData == "") {
				s.lost["thinking that Anthropic did not sign"]++
				continue
			}
		case eventlog.ProviderBlock:
			if c.Provider != content.Anthropic {
				s.lost["blocks of other providers"]++
				continue
			}
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// accept makes of calls and results what the API takes, and says what they were; nil if
// they were that.
func (s *sessionWriter) accept(blocks []eventlog.Block) ([]eventlog.Block, jsontext.Value) {
	out := make([]eventlog.Block, len(blocks))
	n := notes{Calls: map[string]string{}, Spaced: map[string]string{}}
	for i, b := range blocks {
		switch c := b.(type) {
		case eventlog.ToolCall:
			id := s.callID(c.CallID)
			if id != c.CallID {
				n.Calls[id] = c.CallID
			}
			c.CallID = id
			if object := transcript.WrapArguments(c.Arguments); object != c.Arguments {
				c.Arguments = object
				n.Wrapped = append(n.Wrapped, id)
			} else if compact := transcript.Compact([]byte(c.Arguments)); compact != c.Arguments {
				n.Spaced[id] = c.Arguments
				c.Arguments = compact // a record is one line
			}
			b = c
		case eventlog.ToolResult:
			c.CallID = s.callID(c.CallID)
			c.Content = s.resultContent(c.Content)
			b = c
		}
		out[i] = b
	}
	if len(n.Calls)+len(n.Wrapped)+len(n.Spaced) == 0 {
		return out, nil
	}
	return out, transcript.JSON(n)
}

func (s *sessionWriter) resultContent(blocks []eventlog.Block) []eventlog.Block {
	out := make([]eventlog.Block, 0, len(blocks))
	for _, b := range blocks {
		if p, ok := b.(eventlog.ProviderBlock); ok && p.Provider != content.Anthropic {
			b = eventlog.Text{Text: p.JSON}
		}
		out = append(out, b)
	}
	return out
}

func (s *sessionWriter) callID(id string) string {
	if acceptable.MatchString(id) {
		return id
	}
	return "toolu_" + transcript.UUID(s.around.sessionID, id, "call")
}

// uuid is the id of an event's n-th record.
func (s *sessionWriter) uuid(event string, n int) string {
	switch {
	case n > 0:
		return transcript.UUID(s.around.sessionID, event, strconv.Itoa(n))
	case transcript.IsUUID(event):
		return event
	}
	return transcript.UUID(s.around.sessionID, event)
}

// replyUsage is what the reply of the event took. The harness looks for it in every
// record of a reply.
func (s *sessionWriter) replyUsage(i int) map[string]string {
	if s.usage == nil {
		s.usage = transcript.ReplyUsage(s.session.Events)
	}
	if labels := s.usage[i]; labels != nil {
		return labels
	}
	return map[string]string{transcript.LabelPromptTokens: "0"}
}
