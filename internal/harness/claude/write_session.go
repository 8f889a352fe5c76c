package claude

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// sessionWriter makes the records of one session.
type sessionWriter struct {
	*writer
	session   transcript.Session
	around    envelope
	envelopes transcript.Envelopes
	main      bool
	lines     []line
	// between are records to be written between a boundary and its summary.
	between [][]byte
	// held are custom events with a whole record, by the id of the message that is a part of it.
	held map[string]*eventlog.Custom
	// uuids are the uuids of each event's records.
	uuids map[string][]string
	// place is the index in lines of a record, by uuid.
	place map[string]int
	// open are the calls without a result in the newest reply, whose group is group.
	open     []string
	group    string
	answered map[string]bool
	// usage is filled when first needed.
	usage map[int]map[string]string
	at    time.Time
}

func (s *sessionWriter) event(i int, e *eventlog.Event) {
	if !e.Time.IsZero() {
		s.at = e.Time
	}
	if custom, ok := e.Body.(*eventlog.Custom); ok {
		s.custom(e, custom)
		return
	}
	switch body := e.Body.(type) {
	case *eventlog.Message:
		if e.Labels[labelBetween] != "true" {
			s.flushBetween()
		}
		s.interrupt(e, body)
		if s.held[e.ID] == nil && !s.imported(e, body) {
			s.foreign(i, e, body)
		}
	case *eventlog.Compaction:
		s.report.Compactions++
		if !s.importedBoundary(e, body) {
			s.flushBetween()
			s.close(e)
			s.boundary(e, body)
		}
	default:
		s.lost["reminders"]++
	}
}

func (s *sessionWriter) custom(e *eventlog.Event, c *eventlog.Custom) {
	switch {
	case s.envelopes.Holds(c):
		return
	case !transcript.Own(Name, c), !transcript.Valid([]byte(c.JSON)):
		if e.Labels[transcript.LabelPromptTokens] == "" { // otherwise it only has a reply's usage
			s.lost["custom events of others"]++
		}
		return
	}
	raw := transcript.Compacted([]byte(c.JSON))
	if e.Labels[labelBetween] == "true" {
		s.between = append(s.between, raw)
		return
	}
	s.flushBetween()
	s.write(e.ID, raw)
}

// flushBetween writes the records between a boundary and its summary, even if the boundary does not come.
func (s *sessionWriter) flushBetween() {
	for _, raw := range s.between {
		s.write("", raw)
	}
	s.between = nil
}

// write adds a record of an event to the file, with the session id of the new file.
func (s *sessionWriter) write(event string, raw []byte) {
	if id := s.session.Labels[transcript.LabelSessionID]; id != s.around.sessionID && raw[0] == '{' {
		raw = transcript.Rewrite(raw, func(name string, value []byte) []byte {
			if name == "sessionId" {
				return []byte(transcript.Quote(s.around.sessionID))
			}
			return value
		})
	}
	if event != "" {
		uuid := uuidOf(raw)
		s.uuids[event] = append(s.uuids[event], uuid)
		s.place[uuid] = len(s.lines)
	}
	if s.around.progress {
		raw = s.progress(raw)
	}
	s.lines = append(s.lines, line{s.at, raw})
}

func uuidOf(raw []byte) string {
	var r struct {
		UUID string `json:"uuid"`
	}
	if transcript.Decode(raw, &r) != nil {
		return ""
	}
	return r.UUID
}

// leaf returns the uuid of the newest record that has one: the parent of the next record.
func (s *sessionWriter) leaf() string {
	for i := len(s.lines) - 1; i >= 0; i-- {
		if uuid := uuidOf(s.lines[i].json); uuid != "" {
			return uuid
		}
	}
	return ""
}

// progress makes the progress record that carries a subagent's record.
func (s *sessionWriter) progress(inner []byte) []byte {
	around := s.around
	around.sidechain = false
	return around.record("progress", "", "data", transcript.Object("type", "agent_progress", "agentId", s.around.agent,
		"message", jsontext.Value(inner), "normalizedMessages", transcript.List[string]()),
		"parentToolUseID", transcript.Optional(s.session.ParentCallID),
		"uuid", transcript.UUID(s.around.sessionID, string(inner)), "timestamp", transcript.Stamp(s.at))
}

// imported writes a message that was read from a record of the harness, and returns false for any other.
func (s *sessionWriter) imported(e *eventlog.Event, m *eventlog.Message) bool {
	d, ok := s.envelopes.Entries[e.ID]
	if !ok || !own(s.session) {
		return false
	}
	base := s.around.of(e, m)
	raw, err := transcript.Amend(s.around.carried(base), []byte(d))
	if err != nil {
		s.lost["what records said besides their messages"]++
		return false
	}
	if e.Labels[labelBetween] == "true" {
		s.between = append(s.between, raw)
		return true
	}
	s.write(e.ID, s.linked(m, raw))
	return true
}

// linked adds to the record of a result the id of the subagent that its call began.
func (s *sessionWriter) linked(m *eventlog.Message, raw []byte) []byte {
	if !s.main || len(s.agents) == 0 {
		return raw
	}
	for _, b := range m.Blocks {
		if r, ok := b.(eventlog.ToolResult); ok && s.agents[r.CallID] != "" {
			return transcript.With(raw, "toolUseResult", transcript.Object("agentId", s.agents[r.CallID]))
		}
	}
	return raw
}

// interruptedText replaces a result that the log does not have.
const interruptedText = "[contextd: this call was interrupted; the log holds no result for it]"

// interrupt writes results for calls of the newest reply that have none, when the session goes on after it, because
// the harness would drop such a call. The reader skips these results. Calls at the very end get none, because the
// harness answers those itself. Sessions of the harness's own are written unchanged.
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

// close writes the missing results before the record of an event.
func (s *sessionWriter) close(e *eventlog.Event) {
	for n, id := range s.open {
		s.interrupted(e, n, id)
	}
	s.open = nil
}

func (s *sessionWriter) interrupted(e *eventlog.Event, n int, call string) {
	event := *e
	event.ID, event.Time, event.Labels = s.uuid(e.ID+"/interrupted", n+1), transcript.OrEpoch(s.at), nil
	m := &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{eventlog.ToolResult{
		CallID: s.callID(call), IsError: true, Content: []eventlog.Block{eventlog.Text{Text: interruptedText}},
	}}}
	v := s.around.message(&event, m, m.Blocks, s.leaf())
	s.write("", transcript.With(v, "contextd", transcript.JSON(notes{Interrupted: true})))
}

// results returns the ids of the calls for which a session has results.
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
