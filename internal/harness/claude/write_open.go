package claude

import (
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// interruptedText is in the place of a result that the log does not have.
const interruptedText = "[contextd: this call was interrupted; the log holds no result for it]"

// interrupt writes results for the calls of the reply before that have none, as soon as the
// session goes on after it: the harness leaves such a call out. The reader passes them
// over. The harness gives a result of its own to calls that a session ends in, and what it
// wrote itself stays unchanged.
func (s *sessionWriter) interrupt(e *eventlog.Event, m *eventlog.Message) {
	if own(s.session) {
		return
	}
	if m.Role == eventlog.RoleUser || m.Role == eventlog.RoleAssistant && (m.GroupID == "" || m.GroupID != s.group) {
		s.close(e)
	}
	if m.Role == eventlog.RoleAssistant {
		s.group = m.GroupID
	}
	if s.answered == nil {
		s.answered = results(s.session.Events)
	}
	for _, b := range m.Blocks {
		if c, ok := b.(eventlog.ToolCall); ok && !s.answered[c.CallID] {
			s.open = append(s.open, c.CallID)
		}
	}
}

// close writes the results that are still missing where the event is to be.
func (s *sessionWriter) close(e *eventlog.Event) {
	for n, id := range s.open {
		s.interrupted(e, n, id)
	}
	s.open = nil
}

func (s *sessionWriter) interrupted(e *eventlog.Event, n int, call string) {
	event := *e
	event.ID, event.Time, event.Labels = s.uuid(e.ID+"/interrupted", n+1), s.time(), nil
	m := &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{eventlog.ToolResult{
		CallID: s.callID(call), IsError: true, Content: []eventlog.Block{eventlog.Text{Text: interruptedText}},
	}}}
	v := s.around.message(&event, m, m.Blocks, s.leaf())
	s.write("", transcript.With(v, "contextd", transcript.JSON(notes{Interrupted: true})))
}

// results are the calls that a session has results for.
func results(events []eventlog.Event) map[string]bool {
	ids := map[string]bool{}
	for _, e := range events {
		if m, ok := e.Body.(*eventlog.Message); ok {
			for _, b := range m.Blocks {
				if r, ok := b.(eventlog.ToolResult); ok {
					ids[r.CallID] = true
				}
			}
		}
	}
	return ids
}
