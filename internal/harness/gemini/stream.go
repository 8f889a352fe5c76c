package gemini

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// streamEvent is a line that the harness prints with --output-format stream-json.
type streamEvent struct {
	Type      string         `json:"type"`
	Timestamp string         `json:"timestamp"`
	SessionID string         `json:"session_id"`
	Model     string         `json:"model"`
	Role      string         `json:"role"`
	Content   jsontext.Value `json:"content"`
	Delta     bool           `json:"delta"`
	Tool      string         `json:"tool_name"`
	ToolID    string         `json:"tool_id"`
	Arguments jsontext.Value `json:"parameters"`
	Status    string         `json:"status"`
	Output    jsontext.Value `json:"output"`
	Error     struct {
		Message string `json:"message"`
	} `json:"error"`
}

// streamBytes is how much of a file is searched for the event that begins a stream. The program that runs the
// harness may print other lines before it.
const streamBytes = 64 << 10

// streamed reports whether a file is the harness's printed output.
func streamed(in *transcript.Input) (bool, error) {
	start, err := in.Peek(streamBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read transcript: %w", err)
	}
	for line := range bytes.Lines(start) {
		if begins(transcript.NewProbe(line)) {
			return true, nil
		}
	}
	return false, nil
}

// begins reports whether one of the records is the event that begins a stream.
func begins(p transcript.Probe) bool {
	for _, r := range p.Records {
		if r["type"] == "init" && r["session_id"] != "" && r["timestamp"] != "" {
			return true
		}
	}
	return false
}

// stream reads the harness's printed output; each session that it names becomes a conversation.
type stream struct {
	out     *transcript.Builder
	session *transcript.SessionBuilder
	runs    int
	id      string // of the session
	model   string
	// reply is the group of the model's messages up to the next result or user message.
	reply string
	// said is a text that may have more pieces; entry is its first piece.
	said  strings.Builder
	entry *transcript.Entry
	// edits are the unanswered calls that may change files, by their ids.
	edits map[string]streamEvent
}

func readStream(in io.Reader, out *transcript.Builder, session *transcript.SessionBuilder) error {
	s := &stream{out: out, session: session, edits: map[string]streamEvent{}}
	err := transcript.ReadLines(in, out.Warn, s.record)
	s.flush()
	return err
}

func (s *stream) record(line transcript.Record) {
	entry := transcript.Entry{Line: line.Line, Native: line.JSON, ID: transcript.PositionID(line)}
	var e streamEvent
	if err := transcript.Decode(line.JSON, &e); err != nil {
		s.session.Unreadable(entry, err)
		return
	}
	entry.Time = transcript.ParseTime(e.Timestamp)
	switch {
	case e.Timestamp == "": // the harness writes a time in each event
		s.session.Keep(entry, "foreign")
	case e.Type == "init":
		s.begin(&e)
	case e.Type == "message" && e.Role == "assistant":
		s.piece(entry, &e)
	case e.Type == "message":
		s.user(entry, &e)
	case e.Type == "tool_use":
		s.call(entry, &e)
	case e.Type == "tool_result":
		s.result(entry, &e)
	case e.Type == "result":
		s.flush()
		s.reply = ""
		s.session.Keep(entry, e.Type)
	default:
		s.session.Keep(entry, e.Type)
	}
}

// begin starts another session, unless the event names the one that is being read.
func (s *stream) begin(e *streamEvent) {
	s.flush()
	s.reply, s.model = "", e.Model
	if e.SessionID == s.id && s.runs > 0 {
		return
	}
	s.id = e.SessionID
	if s.runs++; s.runs > 1 {
		s.session = s.out.Session(strconv.Itoa(s.runs))
		s.session.Label(transcript.LabelHarness, format)
	}
	s.session.Label(transcript.LabelSessionID, e.SessionID)
}

func (s *stream) user(entry transcript.Entry, e *streamEvent) {
	s.flush()
	s.reply = ""
	blocks, err := content.GoogleTexts(e.Content)
	if err != nil {
		s.session.Unreadable(entry, err)
		return
	}
	entry.Labels = injectedLabels(blocks)
	entry.Body = &eventlog.Message{Role: eventlog.RoleUser, Blocks: blocks}
	s.session.Append(entry)
}

// piece adds a text of the model's, or the next piece of one.
func (s *stream) piece(entry transcript.Entry, e *streamEvent) {
	if !e.Delta {
		s.flush()
	}
	text, ok := transcript.Text(e.Content)
	if !ok {
		s.session.Unreadable(entry, fmt.Errorf("content: unexpected value %.100q", e.Content))
		return
	}
	if s.entry == nil {
		entry.Native = bytes.Clone(entry.Native)
		s.entry = &entry
	}
	s.said.WriteString(text)
	if !e.Delta {
		s.flush()
	}
}

// flush appends the text that was collected from pieces.
func (s *stream) flush() {
	if s.entry == nil {
		return
	}
	s.says(*s.entry, eventlog.Text{Text: s.said.String()})
	s.entry = nil
	s.said.Reset()
}

// says appends a part of the model's reply.
func (s *stream) says(entry transcript.Entry, b eventlog.Block) {
	if s.reply == "" {
		s.reply = entry.ID
	}
	entry.Body = &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: s.reply, Model: s.model, Blocks: []eventlog.Block{b}}
	s.session.Append(entry)
}

func (s *stream) call(entry transcript.Entry, e *streamEvent) {
	s.flush()
	if len(editors[e.Tool]) > 0 {
		s.edits[e.ToolID] = *e
	}
	s.says(entry, eventlog.ToolCall{CallID: e.ToolID, Name: e.Tool, Arguments: transcript.Compact(e.Arguments)})
}

func (s *stream) result(entry transcript.Entry, e *streamEvent) {
	s.flush()
	s.reply = ""
	output, err := content.GoogleTexts(e.Output)
	if err != nil {
		s.session.Unreadable(entry, err)
		return
	}
	if len(output) == 0 || output[0] == (eventlog.Text{}) {
		output = nil
		if e.Error.Message != "" {
			output = []eventlog.Block{eventlog.Text{Text: e.Error.Message}}
		}
	}
	call := s.edits[e.ToolID]
	delete(s.edits, e.ToolID)
	entry.Labels = toolCall{Name: call.Tool, Args: call.Arguments, Status: e.Status}.labels()
	entry.Body = &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{
		eventlog.ToolResult{CallID: e.ToolID, Content: output, IsError: e.Status == "error"},
	}}
	s.session.Append(entry)
}
