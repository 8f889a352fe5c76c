package claude

import (
	"bytes"
	"io"
	"strings"
	"time"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// writtenVersion is the version that wrote the files after which records of other
// sessions are made.
const writtenVersion = "2.1.17"

type writer struct {
	o      transcript.WriteOptions
	report transcript.WriteReport
	// lost counts what the harness has no place for.
	lost transcript.Tally
	// agents are the subagents' ids by the calls of the main session that began them.
	agents map[string]string
}

// line is one record on its way to the file.
type line struct {
	at   time.Time
	json []byte
}

// write writes the first session as Claude Code's, and subagents' sessions as its
// sidechains. What was read from Claude Code is written unchanged, but for
// NotKept.
func write(w io.Writer, t transcript.Transcript, o transcript.WriteOptions) (transcript.WriteReport, error) {
	out := &writer{o: o, lost: transcript.Tally{}, agents: map[string]string{}}
	var queues [][]line
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
		queues = append(queues, out.session(s, sessionID, i == 0))
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

// link notes which calls began sidechains that the reader would not find again by
// itself.
func (w *writer) link(sidechains []transcript.Session) {
	for _, s := range sidechains {
		if s.ParentCallID != "" && s.Labels[labelProgress] == "" {
			if agent := agentOf(s); agent != "" {
				w.agents[s.ParentCallID] = agent
			}
		}
	}
}

func agentOf(s transcript.Session) string {
	if own(s) {
		return s.Labels[labelAgent]
	}
	return s.Suffix
}

// inOrder merges the sessions' records by time, each in its own order. From the first
// sidechain on they begin in their order, whatever their times: a record that comes before
// the one it follows is the first of a sidechain for the reader.
func inOrder(queues [][]line, first int) func(func(line) bool) {
	return func(yield func(line) bool) {
		for begin := first; ; {
			for begin < len(queues) && len(queues[begin]) == 0 {
				begin++
			}
			next := -1
			for i, q := range queues {
				if i <= begin && len(q) > 0 && (next < 0 || q[0].at.Before(queues[next][0].at)) {
					next = i
				}
			}
			if next < 0 || !yield(queues[next][0]) {
				return
			}
			queues[next] = queues[next][1:]
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
