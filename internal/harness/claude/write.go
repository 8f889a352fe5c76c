package claude

import (
	"bytes"
	"io"
	"strings"
	"time"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// writtenVersion is the version of Claude Code whose files the records of foreign sessions imitate.
const writtenVersion = "2.1.17"

type writer struct {
	o      transcript.WriteOptions
	report transcript.WriteReport
	// lost counts what the harness has no place for.
	lost transcript.Tally
	// agents are the subagents' ids by the calls of the main session that began them.
	agents map[string]string
	// through is, by call, the number of the main session's records up to the one with the call; 0 if the
	// result comes first.
	through map[string]int
}

// waiting are a session's records. None may be written before this number of the main session's records.
type waiting struct {
	lines []line
	after int
}

// line is one record on its way to the file.
type line struct {
	at   time.Time
	json []byte
}

// write writes the first session as Claude Code's, and subagents' sessions as its sidechains. Sessions that
// were read from Claude Code are written unchanged except for NotKept.
func write(w io.Writer, t transcript.Transcript, o transcript.WriteOptions) (transcript.WriteReport, error) {
	out := &writer{o: o, lost: transcript.Tally{}, agents: map[string]string{}, through: map[string]int{}}
	var queues []waiting
	sessionID := ""
	for i, s := range t.Sessions {
		if i > 0 && !isSidechain(s) {
			out.lost["independent sessions"]++
			continue
		}
		if i == 0 {
			sessionID = out.sessionID(s)
			out.link(t.Sessions[1:])
		}
		next := waiting{lines: out.session(s, sessionID, i == 0)}
		if i > 0 {
			next.after = out.through[s.ParentCallID]
		}
		queues = append(queues, next)
	}
	out.report.Lost(out.lost)
	var file bytes.Buffer
	first := 1
	if len(t.Sessions) > 0 && isSidechain(t.Sessions[0]) {
		first = 0
	}
	for l := range inOrder(queues, first) {
		out.report.Entries++
		file.Write(append(l.json, '\n'))
	}
	return out.report.Finish(w, file.Bytes())
}

func isSidechain(s transcript.Session) bool {
	return s.ParentCallID != "" || strings.HasPrefix(s.Suffix, "sidechain-") || s.Labels[labelSidechain] == "true"
}

// own reports whether the session was read from Claude Code.
func own(s transcript.Session) bool { return s.Labels[transcript.LabelHarness] == format }

func (w *writer) sessionID(s transcript.Session) string {
	id := s.Labels[transcript.LabelSessionID]
	switch {
	case w.o.SessionID != "":
		return w.o.SessionID
	case own(s), transcript.IsUUID(id):
		return id
	}
	return transcript.SessionID(s)
}

// link records the calls that began a sidechain which the reader would not connect to them without an agent
// id.
func (w *writer) link(sidechains []transcript.Session) {
	for _, s := range sidechains {
		if s.ParentCallID != "" && s.Labels[labelProgress] == "" {
			if agent := agentOf(s); agent != "" {
				w.agents[s.ParentCallID] = agent
			}
		}
	}
}

// mention records the calls and results in an event of the main session, with the number of records written so far.
func (w *writer) mention(e *eventlog.Event, records int) {
	m, ok := e.Body.(*eventlog.Message)
	if !ok {
		return
	}
	for _, b := range m.Blocks {
		id, at := "", 0
		switch b := b.(type) {
		case eventlog.ToolCall:
			id, at = b.CallID, records
		case eventlog.ToolResult:
			id = b.CallID
		}
		if _, known := w.through[id]; !known && id != "" {
			w.through[id] = at
		}
	}
}

func agentOf(s transcript.Session) string {
	if own(s) {
		return s.Labels[labelAgent]
	}
	return s.Suffix
}

// inOrder merges the sessions' records by time, but keeps the order within a session. Sidechains begin in
// their order, from index first on, whatever their times: to the reader, a record that comes before its
// parent is the first of a sidechain. A sidechain begins after the call that began it.
func inOrder(queues []waiting, first int) func(func(line) bool) {
	return func(yield func(line) bool) {
		for begin, main := first, 0; ; {
			for begin < len(queues) && len(queues[begin].lines) == 0 {
				begin++
			}
			next := -1
			for i, q := range queues {
				if i <= begin && len(q.lines) > 0 && q.after <= main && (next < 0 || q.lines[0].at.Before(queues[next].lines[0].at)) {
					next = i
				}
			}
			if next < 0 || !yield(queues[next].lines[0]) {
				return
			}
			queues[next].lines = queues[next].lines[1:]
			if next == 0 {
				main++
			}
			if next == begin {
				begin++
			}
		}
	}
}

// session makes a session's records.
func (w *writer) session(s transcript.Session, id string, main bool) []line {
	sw := &sessionWriter{
		writer: w, session: s, around: w.envelope(s, id),
		envelopes: transcript.EnvelopesOf(Name, s), main: main,
		uuids: map[string][]string{}, held: transcript.Held(Name, s.Events), place: map[string]int{},
	}
	for i := range s.Events {
		sw.event(i, &s.Events[i])
		if main {
			w.mention(&s.Events[i], len(sw.lines))
		}
	}
	sw.flushBetween()
	return sw.lines
}

func (w *writer) envelope(s transcript.Session, id string) envelope {
	around := envelopeOf(s.Labels)
	if around.sessionID != "" || !own(s) {
		around.sessionID = id
	}
	if own(s) {
		return around
	}
	around.progress, around.sidechain = false, isSidechain(s)
	around.agent = ""
	if around.sidechain {
		around.agent = s.Suffix
	}
	around.userType, around.version = "external", writtenVersion
	around.cwd = w.o.Directory(s.Labels)
	return around
}
