package transcript

import (
	"strconv"

	eventlog "github.com/contextd/contextd/internal/log"
)

// ReserveCallID returns the id that a tool call will have in the session. It is for formats that have a call and its
// result in one entry and reuse ids: the reader writes this id into both. The call must be appended before its
// result.
func (s *SessionBuilder) ReserveCallID(original string) string {
	id := s.newCallID(Clean(original))
	if s.held == nil {
		s.held = map[string]bool{}
	}
	s.held[id] = true
	return id
}

func (s *SessionBuilder) appendMessage(e Entry, m *eventlog.Message) (id string) {
	blocks := make([]eventlog.Block, 0, len(m.Blocks))
	var orphan, misplaced bool
	misplace := func(format string, args ...any) {
		s.builder.Warn(e.Line, format+"; kept as a custom event", args...)
		misplaced = true
	}
	event := len(s.session.Events)
	for _, block := range m.Blocks {
		switch c := block.(type) {
		case eventlog.ToolCall:
			if m.Role != eventlog.RoleAssistant {
				misplace("tool call %q is in a %s message", c.CallID, m.Role)
				continue
			}
			blocks = append(blocks, s.call(e, m, c, event))
		case eventlog.ToolResult:
			if m.Role != eventlog.RoleTool && m.Role != eventlog.RoleUser {
				misplace("tool result %q is in a %s message", c.CallID, m.Role)
				continue
			}
			final, ok := s.answer(e, c.CallID)
			if !ok {
				orphan = true
				continue
			}
			c.CallID = final
			blocks = append(blocks, c)
		case nil:
		case eventlog.Text:
			// An empty text says nothing and providers refuse it.
			if c.Text != "" && m.Role != eventlog.RoleTool {
				blocks = append(blocks, c)
			} else if c.Text != "" {
				misplace("tool message holds text besides results")
			}
		default:
			if m.Role == eventlog.RoleTool {
				misplace("tool message holds something besides results")
				continue
			}
			blocks = append(blocks, block)
		}
	}
	if len(blocks) > 0 && !blank(blocks) {
		sent := *m
		sent.Blocks = blocks
		e.Body = &sent
		s.push(e)
		id = e.ID
	} else if !orphan && !misplaced {
		s.builder.Warn(e.Line, "%s message has no content; kept as a custom event", m.Role)
		s.keep(e, "empty-message")
	}
	if orphan {
		s.keep(e, "orphan-result")
	}
	if misplaced {
		s.keep(e, "misplaced-block")
	}
	return id
}

// blank reports whether the blocks say nothing at all.
func blank(blocks []eventlog.Block) bool {
	for _, b := range blocks {
		switch b := b.(type) {
		case eventlog.Text:
			if b.Text != "" {
				return false
			}
		case eventlog.Thinking:
			if b.Text != "" || b.Sealed() {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func (s *SessionBuilder) call(e Entry, m *eventlog.Message, c eventlog.ToolCall, event int) eventlog.ToolCall {
	original := c.CallID
	switch {
	case s.held[c.CallID]:
		delete(s.held, c.CallID)
	case c.CallID == "":
		c.CallID = s.newCallID("call-" + e.ID)
	default:
		c.CallID = s.newCallID(c.CallID)
	}
	if c.Name == "" {
		s.builder.Warn(e.Line, "tool call %q has no name", c.CallID)
		c.Name = "unknown"
	}
	s.open = append(s.open, openCall{original: original, final: c.CallID, group: m.GroupID, event: event})
	return c
}

// Called reports whether the session has a call with this id, answered or not.
func (s *SessionBuilder) Called(id string) bool { return s.calls[id] > 0 || s.callIDs[id] }

// newCallID returns the id itself for its first use, then id#2 and so on.
func (s *SessionBuilder) newCallID(original string) string {
	if s.callIDs == nil {
		s.callIDs = map[string]bool{}
	}
	s.calls[original]++
	id := original
	for n := s.calls[original]; s.callIDs[id] || id == ""; n++ {
		id = original + "#" + strconv.Itoa(n)
		s.calls[original] = n
	}
	if id != original {
		s.builder.t.RenamedIDs++
	}
	s.callIDs[id] = true
	return id
}

// answer finds the call that a result with this id answers: the first unanswered
// one of the newest message that used the id. A result without an id answers the
// first unanswered call of the newest message that has one.
func (s *SessionBuilder) answer(e Entry, id string) (string, bool) {
	newest := -1
	for i := len(s.open) - 1; i >= 0; i-- {
		o := s.open[i]
		if id != "" && o.original != id && o.final != id {
			continue
		}
		if newest < 0 {
			newest = i
			continue
		}
		n := s.open[newest]
		if o.event != n.event && (o.group == "" || o.group != n.group) {
			break
		}
		newest = i
	}
	if newest < 0 {
		why := "answers no call before it"
		if s.calls[id] > 0 {
			why = "answers a call that has its result"
		}
		s.builder.Warn(e.Line, "tool result %q %s; kept as a custom event", id, why)
		return "", false
	}
	final := s.open[newest].final
	s.open = append(s.open[:newest], s.open[newest+1:]...)
	return final, true
}
