package opencode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// preamble is what `opencode export` prints on stderr. It is the file's first line if a shell redirected both
// outputs to it.
const preamble = "Exporting session: "

// beginning is how many bytes of a file are examined for its shape.
const beginning = 64 << 10

// detect recognises a session by its first members, and messages or their parts that are in a file without one.
func detect(p transcript.Probe) bool {
	return p.Has("messages[].info.role") || p.Has("messages[].parts[].type") && !p.Has("messages[].role") ||
		p.Has("info.id", "info.projectID") || p.Has("info.id", "info.directory") ||
		p.Has("info.role", "info.sessionID") || p.Has("sessionID", "part.messageID") || p.Has("[].info.role", "[].info.sessionID") ||
		strings.HasPrefix(p.Line, preamble)
}

// read reads a whole session, or only its messages: a list, or one a line.
func read(in io.Reader) (transcript.Transcript, error) {
	out := transcript.NewBuilder(Name, in)
	r := &reader{places: map[string][]int{}, begins: map[string]int{}, ends: map[string]int{}, out: out, session: out.Session(""), again: map[string]bool{}, render: renderer{warn: func(string, ...any) {}}}
	r.session.Label(transcript.LabelHarness, Name)
	buffered := transcript.Ahead(in, beginning)
	start, err := buffered.Peek(beginning)
	if err != nil && !errors.Is(err, io.EOF) {
		return transcript.Transcript{}, fmt.Errorf("read transcript: %w", err)
	}
	line := 1
	if said := preambleOf(start); said > 0 {
		if _, err := buffered.Discard(said); err != nil {
			return transcript.Transcript{}, fmt.Errorf("read transcript: %w", err)
		}
		start, line = start[said:], 2
	}
	switch probe := transcript.NewProbe(start); {
	case probe.Has("[].info.role"):
		doc := transcript.NewDocument(buffered, out.Warn)
		err = doc.Each(func(kind byte) (bool, error) {
			if kind != '[' {
				out.Warn(doc.Line(), "no list of messages; not read")
				return false, nil
			}
			return true, doc.Rest(r.alone)
		})
	case probe.Has("info.role"):
		err = transcript.ReadLines(buffered, out.Warn, func(one transcript.Record) { r.alone(one.JSON, one.Line) })
	case probe.Has("part.messageID"):
		var m printed
		err = transcript.ReadLines(buffered, out.Warn, func(one transcript.Record) { r.part(&m, one) })
		m.end(r)
	default:
		doc := transcript.NewDocument(buffered, out.Warn).StartingAt(line)
		err = doc.Settle(doc.Object("messages", r.field, r.message))
	}
	r.flush()
	r.prune(0)
	r.takeBack()
	return out.Finish(err)
}

// preambleOf returns the length of the line with the preamble; 0 if there is none.
func preambleOf(start []byte) int {
	if !bytes.HasPrefix(start, []byte(preamble)) {
		return 0
	}
	return bytes.IndexByte(start, '\n') + 1
}

// alone reads a message of a file without session info: only the messages name the session.
func (r *reader) alone(raw jsontext.Value, line int) {
	var rec struct {
		Info struct {
			SessionID transcript.Word `json:"sessionID"`
			Path      struct {
				Directory transcript.Word `json:"cwd"`
			} `json:"path"`
		} `json:"info"`
	}
	if transcript.Decode(raw, &rec) == nil {
		r.session.Label(transcript.LabelSessionID, string(rec.Info.SessionID))
		r.session.Label(transcript.LabelWorkingDirectory, string(rec.Info.Path.Directory))
	}
	r.message(raw, line)
}

// printed is a reply as `opencode run --format json` prints it: its parts, each on a line.
type printed struct {
	id, session string
	line        int
	at          jsontext.Value
	parts       []jsontext.Value
}

// part adds a part to the reply, which ends with the first part of another one.
func (r *reader) part(m *printed, one transcript.Record) {
	var rec struct {
		Type      transcript.Word `json:"type"`
		SessionID transcript.Word `json:"sessionID"`
		Timestamp jsontext.Value  `json:"timestamp"`
		Part      jsontext.Value  `json:"part"`
	}
	var part struct {
		MessageID transcript.Word `json:"messageID"`
	}
	if transcript.Decode(one.JSON, &rec) != nil || transcript.Decode(rec.Part, &part) != nil || part.MessageID == "" {
		r.out.Skip("line " + string(rec.Type)) // such as an error
		return
	}
	if m.id != string(part.MessageID) {
		m.end(r)
		*m = printed{id: string(part.MessageID), session: string(rec.SessionID), line: one.Line, at: bytes.Clone(rec.Timestamp)}
	}
	m.parts = append(m.parts, bytes.Clone(rec.Part))
}

func (m *printed) end(r *reader) {
	if m.id == "" {
		return
	}
	info := transcript.Object("id", m.id, "sessionID", m.session, "role", "assistant")
	if len(m.at) > 0 {
		info = transcript.With(info, "time", transcript.Object("created", m.at))
	}
	r.alone(transcript.Object("info", info, "parts", transcript.List(m.parts...)), m.line)
}
