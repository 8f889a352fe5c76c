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
	// between are records that are between a boundary and its summary.
	between [][]byte
	// held are messages whose record is in a custom event.
	held map[string]*eventlog.Custom
	// uuids are the records of each event.
	uuids map[string][]string
	// place is where in lines a record is.
	place map[string]int
	// open are the calls of the newest reply, of the group, that have no result.
	open     []string
	group    string
	answered map[string]bool
	// usage is made when first needed.
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
		if e.Labels[transcript.LabelPromptTokens] == "" { // else it counts a reply
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

// flushBetween writes what a boundary was expected after, and none came.
func (s *sessionWriter) flushBetween() {
	for _, raw := range s.between {
		s.write("", raw)
	}
	s.between = nil
}

// write takes a record as it is to be in the file.
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

// leaf is the newest record that another can follow.
func (s *sessionWriter) leaf() string {
	for i := len(s.lines) - 1; i >= 0; i-- {
		if uuid := uuidOf(s.lines[i].json); uuid != "" {
			return uuid
		}
	}
	return ""
}

// progress makes the record that carries a subagent's.
func (s *sessionWriter) progress(inner []byte) []byte {
	around := s.around
	around.sidechain = false
	return around.record("progress", "", "data", transcript.Object("type", "agent_progress", "agentId", s.around.agent,
		"message", jsontext.Value(inner), "normalizedMessages", transcript.List[string]()),
		"parentToolUseID", transcript.Optional(s.session.ParentCallID),
		"uuid", transcript.UUID(s.around.sessionID, string(inner)), "timestamp", transcript.Stamp(s.at))
}

// imported writes a message that was read from a record of the harness, and
// reports whether it was one.
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

// linked adds to the record of a result which subagent it comes from.
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
	event.ID, event.Time, event.Labels = s.uuid(e.ID+"/interrupted", n+1), transcript.OrEpoch(s.at), nil
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
