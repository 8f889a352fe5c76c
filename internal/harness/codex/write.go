package codex

import (
	"bytes"
	"io"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// writtenVersion is the version of Codex whose files the records of foreign sessions imitate.
const writtenVersion = "0.142.2"

// writer makes the records of one session.
type writer struct {
	out       bytes.Buffer
	report    transcript.WriteReport
	lost      transcript.Tally
	session   transcript.Session
	around    *envelope
	envelopes transcript.Envelopes
	own       bool
	// held are custom events with a whole record, by the id of the message that is a part of it.
	held map[string]*eventlog.Custom
	// items are the payloads of each event's items, for compactions to repeat.
	items map[string][]jsontext.Value
	// lines are the line numbers of each event's items.
	lines map[string][]int
	usage map[int]map[string]string
	at    time.Time
	state state
}

// state is what later records depend on.
type state struct {
	// begun is set once session_meta is written.
	begun bool
	// model is the model of the last turn_context.
	model string
	// reply is the group of the last item in the file; empty if the last record is something else.
	reply string
	total counts
}

// write writes the first session as a rollout; Codex keeps one session in a file. Sessions that were read
// from Codex are written unchanged except for NotKept.
func write(w io.Writer, t transcript.Transcript, o transcript.WriteOptions) (transcript.WriteReport, error) {
	if len(t.Sessions) == 0 {
		t.Sessions = []transcript.Session{{}}
	}
	out := newWriter(t.Sessions[0], o)
	if n := len(t.Sessions) - 1; n > 0 {
		out.lost["further sessions in one file"] = n
	}
	order := transcript.Together(out.session.Events, func(e *eventlog.Event) bool {
		return !out.own || out.envelopes.Entries[e.ID] == ""
	})
	for _, i := range order {
		out.event(i, &out.session.Events[i])
	}
	out.begin()
	out.report.Lost(out.lost)
	return out.report.Finish(w, out.out.Bytes())
}

func newWriter(s transcript.Session, o transcript.WriteOptions) *writer {
	out := &writer{
		lost: transcript.Tally{}, session: s, around: envelopeOf(s.Labels),
		own: s.Labels[transcript.LabelHarness] == format, envelopes: transcript.EnvelopesOf(Name, s),
		held: transcript.Held(Name, s.Events), items: map[string][]jsontext.Value{}, lines: map[string][]int{},
	}
	if !out.own {
		out.around.version, out.around.bare = writtenVersion, false
		if !transcript.IsUUID(out.around.sessionID) {
			out.around.sessionID = transcript.SessionID(s)
		}
		out.around.cwd = o.Directory(s.Labels)
	}
	if o.SessionID != "" {
		out.around.sessionID = o.SessionID
	}
	return out
}

func (w *writer) event(i int, e *eventlog.Event) {
	if !e.Time.IsZero() {
		w.at = e.Time
	}
	switch body := e.Body.(type) {
	case *eventlog.Message:
		if w.own && e.Labels[transcript.LabelReplaced] == "true" {
			w.items[e.ID] = []jsontext.Value{itemOf(body.Role, body.Blocks, "")}
			return // it is in the compaction's list only
		}
		if w.held[e.ID] == nil && !w.imported(e, body) {
			w.foreign(i, e, body)
		}
	case *eventlog.Compaction:
		w.report.Compactions++
		w.compaction(body)
	case *eventlog.Custom:
		w.custom(e, body)
	default:
		w.lost["reminders"]++
	}
}

func (w *writer) custom(e *eventlog.Event, c *eventlog.Custom) {
	switch {
	case w.envelopes.Holds(c):
	case transcript.Own(Name, c) && transcript.Valid([]byte(c.JSON)):
		w.state.begun = w.state.begun || w.own
		w.state.reply = ""
		w.write(w.renamed(transcript.Compacted([]byte(c.JSON))))
	case e.Labels[transcript.LabelPromptTokens] == "": // otherwise it only has a reply's usage
		w.lost["custom events of others"]++
	}
}

// renamed returns a record with the session's id replaced by the one that the file is written for, if the record
// is the session_meta of this session. A forked session also holds the session_meta of its parent, which keeps
// its id.
func (w *writer) renamed(raw []byte) []byte {
	was := w.session.Labels[transcript.LabelSessionID]
	var rec record
	if was == "" || was == w.around.sessionID || transcript.Decode(raw, &rec) != nil || rec.Type != itemMeta {
		return raw
	}
	return transcript.Rewrite(raw, func(name string, value []byte) []byte {
		var meta sessionMeta
		if name != "payload" || transcript.Decode(value, &meta) != nil || meta.ID != was {
			return value
		}
		return transcript.Rewrite(value, func(name string, value []byte) []byte {
			if name == "id" {
				return []byte(transcript.Quote(w.around.sessionID))
			}
			return value
		})
	})
}

// imported writes a message that was read from a record of the harness, and returns false for any other.
func (w *writer) imported(e *eventlog.Event, m *eventlog.Message) bool {
	d, ok := w.envelopes.Entries[e.ID]
	if !ok || !w.own {
		return false
	}
	raw, err := transcript.Amend(w.around.line(e, m), []byte(d))
	if err != nil {
		w.lost["what records said besides their messages"]++
		return false
	}
	w.state.begun = true
	w.state.reply = ""
	if m.Role == eventlog.RoleAssistant {
		w.state.reply, w.state.model = m.GroupID, m.Model
	}
	write := func() {
		w.write(raw)
		w.lines[e.ID] = []int{w.report.Entries}
	}
	if e.Labels[labelItem] == userMessage {
		write()
		w.items[e.ID] = []jsontext.Value{itemOf(m.Role, m.Blocks, "")}
		return true
	}
	w.announce(e, m, write)
	var rec record
	if transcript.Decode(raw, &rec) == nil && len(rec.Payload) > 0 {
		w.items[e.ID] = []jsontext.Value{rec.Payload}
	}
	return true
}

func (w *writer) write(raw []byte) {
	w.report.Entries++
	w.out.Write(raw)
	w.out.WriteByte('\n')
}
