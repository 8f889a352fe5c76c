package pi

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

const (
	// labelStopReason is why an unfinished reply ended. pi shows such replies to no model.
	labelStopReason = Name + ".stop_reason"
	// labelType is the type of a record that is no message in the file, but became one.
	labelType = Name + ".type"
	injected  = true
)

// editors are pi's own tools that change files.
var editors = transcript.Editors{"edit": {"path"}, "write": {"path"}}

func (b *branch) message(entry transcript.Entry, m *message) error {
	switch m.Role {
	case "user":
		return b.user(entry, m.Content, !injected)
	case "assistant":
		return b.assistant(entry, m)
	case "toolResult":
		blocks, err := blocksOf(m.Content)
		if err != nil {
			return err
		}
		result := eventlog.ToolResult{CallID: m.ToolCallID, ToolName: m.ToolName, IsError: m.IsError}
		for _, c := range blocks {
			if t, ok := c.(eventlog.Text); !ok || t.Text != "" {
				result.Content = append(result.Content, c)
			}
		}
		entry.Body = &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{result}}
		if files := b.edits.Result(m.ToolCallID); !m.IsError {
			entry.Labels = transcript.WithFilesChanged(entry.Labels, files)
		}
		b.append(entry)
	case "custom", "hookMessage":
		return b.user(entry, m.Content, injected)
	case "bashExecution":
		if m.Excluded {
			b.session.Keep(entry, "bash-excluded")
			return nil
		}
		entry.Labels = map[string]string{transcript.LabelInjected: "true"} // most of it is what programs print
		entry.Body = &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: m.bash()}}}
		b.append(entry)
	default:
		b.session.Keep(entry, "role-"+m.Role)
	}
	return nil
}

func (b *branch) user(entry transcript.Entry, raw jsontext.Value, byHarness bool) error {
	blocks, err := blocksOf(raw)
	if err != nil {
		return err
	}
	if byHarness {
		entry.Labels = map[string]string{transcript.LabelInjected: "true"}
	}
	entry.Body = &eventlog.Message{Role: eventlog.RoleUser, Blocks: blocks}
	b.append(entry)
	return nil
}

func (b *branch) assistant(entry transcript.Entry, m *message) error {
	blocks, err := blocksOf(m.Content)
	if err != nil {
		return err
	}
	blocks = hosted(blocks)
	if len(blocks) == 0 && (m.StopReason == "aborted" || m.StopReason == "error") {
		b.session.Keep(entry, m.StopReason+"-reply")
		return nil
	}
	entry.Labels = m.Usage.labels()
	if m.StopReason == "aborted" || m.StopReason == "error" {
		entry.Label(labelStopReason, m.StopReason)
	}
	for _, block := range blocks {
		if c, ok := block.(eventlog.ToolCall); ok {
			b.edits.Call(c.CallID, editors.Files(c.Name, []byte(c.Arguments)))
		}
	}
	entry.Body = &eventlog.Message{Role: eventlog.RoleAssistant, Model: m.Model, Blocks: blocks}
	b.append(entry)
	return nil
}

// bash returns the text by which the model sees a command that the user ran.
func (m *message) bash() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Ran `%s`\n", m.Command)
	if m.Output == "" {
		b.WriteString("(no output)")
	} else {
		b.WriteString("```\n" + m.Output + "\n```")
	}
	switch {
	case m.Cancelled:
		b.WriteString("\n\n(command cancelled)")
	case m.ExitCode != nil && *m.ExitCode != 0:
		fmt.Fprintf(&b, "\n\nCommand exited with code %d", *m.ExitCode)
	}
	if m.Truncated && m.Whole != "" {
		fmt.Fprintf(&b, "\n\n[Output truncated. Full output: %s]", m.Whole)
	}
	return b.String()
}

func blocksOf(raw jsontext.Value) ([]eventlog.Block, error) {
	if text, ok := transcript.Text(raw); ok || len(raw) == 0 || raw[0] == 'n' {
		if text == "" {
			return nil, nil
		}
		return []eventlog.Block{eventlog.Text{Text: text}}, nil
	}
	var list []block
	if err := transcript.Decode(raw, &list); err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	blocks := make([]eventlog.Block, 0, len(list))
	for i := range list {
		more, err := list[i].blocks(i, raw)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, more...)
	}
	return blocks, nil
}

// arguments returns a call's arguments as in the file, with the whitespace between tokens.
func arguments(raw jsontext.Value) string {
	if len(raw) == 0 {
		return "{}"
	}
	return transcript.UnwrapArguments(onLine(string(raw)))
}

func (b *block) blocks(i int, whole jsontext.Value) ([]eventlog.Block, error) {
	switch b.Type {
	case "text":
		if b.Text == "" {
			return []eventlog.Block{eventlog.Text{}}, nil
		}
		return append(beforeText(b.TextSignature), eventlog.Text{Text: b.Text}), nil
	case "thinking":
		return []eventlog.Block{b.thinking()}, nil
	case "toolCall":
		return b.signed(eventlog.ToolCall{CallID: b.ID, Name: b.Name, Arguments: arguments(b.Arguments)}), nil
	case "image":
		if data, err := base64.StdEncoding.DecodeString(b.Data); err == nil && len(data) > 0 {
			return []eventlog.Block{eventlog.Media{MIMEType: b.MIMEType, Data: string(data)}}, nil
		}
	}
	var list []jsontext.Value
	if err := transcript.Decode(whole, &list); err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	return []eventlog.Block{eventlog.ProviderBlock{Provider: Name, JSON: transcript.Compact(list[i])}}, nil
}

// branch reads one path through the tree into a session.
type branch struct {
	out     *transcript.Builder
	session *transcript.SessionBuilder
	render  renderer
	sent    []sent // the records that became messages
	index   int    // of the record that is being read
	edits   transcript.OpenEdits
}

// sent is a record that became a message, so that compactions can name it.
type sent struct {
	index int    // of the record
	entry string // the record's own id
	event string
	line  jsontext.Value
}

func newBranch(out *transcript.Builder, suffix string) *branch {
	b := &branch{out: out, session: out.Session(suffix), edits: transcript.OpenEdits{}, render: renderer{warn: func(string, ...any) {}}}
	b.session.Label(transcript.LabelHarness, "pi")
	return b
}

// header reads the first record of a file.
func (b *branch) header(l *line) {
	b.session.Label(transcript.LabelSessionID, l.rec.ID)
	b.session.Label(transcript.LabelWorkingDirectory, l.rec.CWD)
	b.session.Label(transcript.LabelParentSession, l.rec.ParentSession)
	if l.rec.Version > 0 {
		b.session.Label(transcript.LabelVersion, strconv.Itoa(l.rec.Version))
	}
	base := header(l.rec.ID, l.rec.CWD, "")
	b.session.SessionEnvelope(transcript.Difference(base, l.entry.Native))
}

// add reads a record, and stores the difference between it and its events.
func (b *branch) add(l *line) {
	if l.rec.KeptOf != "" {
		b.render.wrote(l.rec.ID, l.entry.Time)
		return // a repetition: the compaction names the original
	}
	from := b.session.Len()
	b.index = l.index
	if l.bad != nil {
		b.session.Unreadable(l.entry, l.bad)
	} else {
		b.record(l.entry, &l.rec)
	}
	events := b.session.Since(from)
	if len(events) > 0 && !kept(events) {
		if base, ok := b.render.entry(events); ok {
			b.session.Envelope(from, transcript.Difference(base, l.entry.Native, l.rec.Message.omitted()...))
		}
	}
	b.render.wrote(l.rec.ID, l.entry.Time)
}

// kept reports whether one of the events holds the entry unchanged.
func kept(events []eventlog.Event) bool {
	for _, e := range events {
		switch e.Body.(type) {
		case *eventlog.Custom, *eventlog.Compaction:
			return true
		}
	}
	return false
}

func (b *branch) record(entry transcript.Entry, rec *record) {
	var err error
	switch rec.Type {
	case "message":
		if rec.Message == nil {
			b.session.Keep(entry, "message-without-content")
			return
		}
		err = b.message(entry, rec.Message)
	case "custom_message":
		err = b.user(entry, rec.Content, injected)
	case "branch_summary":
		b.branchSummary(entry, rec)
	case "compaction":
		b.compaction(entry, rec)
	case "custom":
		b.custom(entry, rec)
	case "model_change", "thinking_level_change", "active_tools_change", "label", "session_info":
		b.session.Record(entry, rec.Type)
	default:
		b.session.Keep(entry, rec.Type)
	}
	if err != nil {
		b.session.Unreadable(entry, err)
	}
}

// append appends a message, and records it for compactions that keep it.
func (b *branch) append(entry transcript.Entry) {
	own := entry.ID
	if id := b.session.Append(entry); id != "" {
		b.sent = append(b.sent, sent{b.index, own, id, entry.Native})
	}
}

// branchSummary appends a summary, for the model, of a branch that the user abandoned.
func (b *branch) branchSummary(entry transcript.Entry, rec *record) {
	if rec.Summary == "" {
		b.session.Record(entry, rec.Type)
		return
	}
	entry.Labels = map[string]string{transcript.LabelInjected: "true", labelType: rec.Type}
	entry.Body = &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: branchText(rec.Summary)}}}
	b.append(entry)
}

// custom reads an extension's entry, which no model sees. Those of contextd hold what pi has no place for.
func (b *branch) custom(entry transcript.Entry, rec *record) {
	if rec.CustomType == compactionType {
		b.unread(entry, rec)
		return
	}
	if rec.CustomType != systemType || strings.Join(rec.Data.texts, "") == "" {
		b.session.Record(entry, rec.Type)
		return
	}
	m := &eventlog.Message{Role: eventlog.RoleSystem}
	for _, text := range rec.Data.texts {
		m.Blocks = append(m.Blocks, eventlog.Text{Text: text})
	}
	entry.Body = m
	b.append(entry)
}
