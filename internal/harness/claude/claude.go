// Package claude reads and writes the transcripts of Claude Code: JSON Lines with one record on each line.
// docs/harness/claude.md describes the format and the mapping.
package claude

import (
	"cmp"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Name of the harness.
const Name = "claude"

// format is the value of LabelHarness in the harness's own sessions.
const format = "claude-code"

// Harness is Claude Code.
var Harness = transcript.Harness{
	Name: Name, Aliases: []string{format}, Detect: detect, Instead: instead, Read: read, Write: write, NotKept: notKept,
	Branches:  &transcript.Branches{Left: left, Follows: follows},
	Subagents: &transcript.Subagents{Is: isSubagent, Prompt: prompt}, Sent: sent,
}

// detect recognises a transcript by its first records.
func detect(p transcript.Probe) bool {
	switch {
	case p.Has("message.parts"), p.Has("systemPayload"): // Qwen Code: the records are alike, what is in them is not
		return false
	case p.Has("type", "uuid", "sessionId"), p.Has("type", "uuid", "parentUuid"):
		return true
	case p.Is("type", "user", "assistant") && (p.Has("type", "message.role", "uuid") || p.Has("type", "message.role", "parent_tool_use_id")):
		return true
	case p.Has("loglines[].type", "loglines[].message.role"), p.Has("[].type", "[].message.role", "[].uuid"), p.Has("[].type", "[].message.role", "[].parent_tool_use_id"):
		return true
	}
	return p.Is("type", "file-history-snapshot", "summary", "queue-operation") && p.Has("type") &&
		(p.Has("messageId") || p.Has("leafUuid") || p.Has("sessionId"))
}

// instead recognises the history of prompts that the harness keeps for its user.
func instead(p transcript.Probe) string {
	if p.Has("display", "pastedContents") {
		return "this is what users typed into Claude Code, not what its model saw: import projects/ of the same folder"
	}
	return ""
}

const syntheticModel = "<synthetic>"

// known are the types of small records that no model sees and that are kept as custom events; other types
// give a warning.
var known = map[string]bool{
	"system": true, "attachment": true, "summary": true, "queue-operation": true, "last-prompt": true,
	"custom-title": true, "ai-title": true, "mode": true, "permission-mode": true, "pr-link": true,
	"agent-name": true, "agent-color": true, "agent-setting": true, "tag": true, "result": true, "rate_limit_event": true,
	"worktree-state": true, "relocated": true, "frame-link": true, "bridge-session": true, "atis-latch": true, "started": true,
	"cost-state": true, "continued-in": true, "artifact-autoreact-ledger": true, "artifact-comment-monitor": true,
}

type reader struct {
	out      *transcript.Builder
	main     *transcript.SessionBuilder
	chains   sidechains
	parents  parents
	edits    transcript.OpenEdits
	notes    restorer
	sessions map[*transcript.SessionBuilder]*progress
	unknown  map[string]bool
	version  string // the harness's, from the last record that names one
	// lost are early results that wait for a record which may turn out to be one that is not kept, by that
	// record's uuid.
	lost map[string][]*earlyResult
}

// progress is the state of the reader for one session. Records of several sessions may alternate.
type progress struct {
	// begun is set once the session's first record was read.
	begun bool
	// events are the ids of messages' events by the uuids of their records.
	events map[string]string
	// pending is a compaction boundary whose summary was not read yet.
	pending *boundary
	// last is the newest boundary in the session; since has the uuids of the messages after it.
	last  *boundary
	since map[string]bool
	// summaries are the contents of summaries by uuid.
	summaries map[string]string
	// local is set while the records report commands that ran only in the terminal.
	local bool
	queue queue
	early early
}

// of returns the state for a session.
func (r *reader) of(session *transcript.SessionBuilder) *progress {
	p := r.sessions[session]
	if p == nil {
		p = &progress{events: map[string]string{}, summaries: map[string]string{}, queue: newQueue()}
		r.sessions[session] = p
	}
	return p
}

// read reads a whole transcript. Its memory grows with the conversation, not with records that are not kept.
func read(in io.Reader) (transcript.Transcript, error) {
	out := transcript.NewBuilder(Name, in)
	r := &reader{
		out: out, main: out.Session(""), unknown: map[string]bool{}, sessions: map[*transcript.SessionBuilder]*progress{},
		edits: transcript.OpenEdits{},
	}
	r.main.Label(transcript.LabelHarness, format)
	r.chains.init(out)
	r.parents.init()
	err := transcript.ReadRecords(in, "loglines", out.Warn, r.record)
	for _, session := range append([]*transcript.SessionBuilder{r.main}, r.chains.all...) {
		r.flush(session)
		r.of(session).queue.report(out.Warn)
		r.reportEarly(session)
	}
	r.parents.report(out.Warn)
	return out.Finish(err)
}

func (r *reader) record(line transcript.Record) {
	var rec record
	entry := transcript.Entry{Line: line.Line, Native: line.JSON}
	if err := transcript.Decode(line.JSON, &rec); err != nil {
		entry.ID = transcript.PositionID(line)
		n := r.main.Len()
		r.main.Unreadable(entry, err)
		r.markBetween(r.main, n)
		return
	}
	rec.translate()
	entry.ID, entry.Time = cmp.Or(rec.UUID, transcript.PositionID(line)), transcript.ParseTime(rec.Timestamp)
	if r.tooEarly(&rec, entry) {
		return
	}
	r.releaseBefore(&rec)
	key := r.chains.key(&rec)
	r.entry(&rec, entry)
	// This comes last, because a boundary's kept messages come before it, and the calls above ask which records came
	// before this one.
	r.parents.add(key, &rec, line.Line)
	r.releaseAfter(&rec)
}

func (r *reader) entry(rec *record, entry transcript.Entry) {
	switch {
	case rec.Notes != nil && rec.Notes.Interrupted:
		entry.Native = r.native(rec, entry.Native)
		r.session(rec).Record(entry, "interrupted")
	case (rec.Type == "user" || rec.Type == "assistant") && rec.Message != nil:
		r.conversation(rec, entry)
	case rec.Type == "system" && rec.Subtype == boundarySubtype:
		r.compaction(rec, entry)
	case rec.Type == "system" && rec.Subtype == unreadSubtype:
		r.compaction(rec, entry)
		r.flush(r.session(rec))
	case rec.Type == "progress" && r.subagent(rec, entry):
	case r.queued(rec, entry):
	case transcript.Drops(notKept, rec.Type):
		r.out.Skip(rec.Type)
	default:
		if !known[rec.Type] && !r.unknown[rec.Type] {
			r.unknown[rec.Type] = true
			r.out.Warn(entry.Line, "records of the unknown type %q are kept as custom events", rec.Type)
		}
		r.keep(r.session(rec), rec, entry)
	}
}

// keep appends a record that is not conversation as a custom event, because the harness may need it again.
func (r *reader) keep(to *transcript.SessionBuilder, rec *record, entry transcript.Entry) {
	kind := rec.Type
	if rec.Subtype != "" {
		kind += "." + rec.Subtype
	}
	if rec.isPrinted {
		r.begin(to, rec) // only the first record has the directory
		to.Custom(entry, kind)
		return
	}
	entry.Native = r.native(rec, entry.Native)
	n := to.Len()
	to.Record(entry, kind)
	r.markBetween(to, n)
}

// markBetween labels the event at index n, if there is one, if it is between a boundary and its summary.
func (r *reader) markBetween(session *transcript.SessionBuilder, n int) {
	if r.of(session).pending != nil && session.Len() > n {
		session.Annotate(n, labelBetween, "true")
	}
}

// native returns the record without the fields that are not kept. A parent that is not kept is replaced by its
// nearest kept ancestor.
func (r *reader) native(rec *record, line []byte) []byte {
	parent := r.parents.kept(rec.ParentUUID)
	moved := parent != rec.ParentUUID
	if !moved && len(rec.ToolUseResult) == 0 {
		return line
	}
	return transcript.Rewrite(line, func(name string, value []byte) []byte {
		switch {
		case slices.ContainsFunc(notKept, func(row transcript.NotKept) bool { return row.Field == name }):
			return nil
		case name == "parentUuid" && moved && parent == "":
			return []byte("null")
		case name == "parentUuid" && moved:
			return []byte(transcript.Quote(parent))
		}
		return value
	})
}

func (r *reader) conversation(rec *record, entry transcript.Entry) {
	session := r.session(rec)
	r.begin(session, rec)
	if rec.IsCompactSummary {
		r.summary(session, rec, entry)
		return
	}
	events := r.of(session).events
	if _, again := events[rec.UUID]; !again {
		r.flush(session) // a repeated record may come between a boundary and its summary
	}
	if rec.UUID != "" && events[rec.UUID] == "" {
		events[rec.UUID] = "" // even if it makes no event
	}
	entry.Native = r.native(rec, entry.Native)
	if rec.IsAPIErrorMessage {
		// No model wrote this: the harness shows its user that a request failed.
		session.Custom(entry, "api-error")
		return
	}
	blocks, err := content.AnthropicBlocks(rec.Message.Content)
	if err != nil {
		session.Unreadable(entry, err)
		return
	}
	r.notes.restore(rec.Notes, blocks)
	if r.of(session).queue.givenBefore(rec, blocks) {
		session.Record(entry, rec.Type)
		return
	}
	m := &eventlog.Message{Role: role(rec.Type, blocks), Blocks: blocks}
	entry.Body = m
	if m.Role == eventlog.RoleAssistant {
		m.GroupID, m.Model = rec.Message.ID, rec.Message.Model
		entry.Labels = rec.Message.Usage.labels()
	}
	at := r.of(session)
	at.noteCommands(rec, said(blocks))
	if m.Role != eventlog.RoleTool && rec.injected(blocks, at.local) {
		entry.Labels = map[string]string{transcript.LabelInjected: "true"}
	} else if m.Role == eventlog.RoleUser {
		entry.Beside(blocks, func(i int) bool {
			text, ok := blocks[i].(eventlog.Text)
			return ok && notification(text.Text)
		})
	}
	r.frame(&entry, rec, rec.framed(blocks))
	entry.Labels = transcript.WithFilesChanged(entry.Labels, r.filesChanged(blocks))
	r.chains.note(rec, session == r.main, blocks)
	if r.append(session, rec, entry) != "" && m.Role == eventlog.RoleAssistant {
		clear(at.queue.given) // a new message of the model
	}
}

// editors are Claude Code's own, and those of iFlow CLI.
var editors = transcript.Editors{
	"Edit": {"file_path"}, "MultiEdit": {"file_path"}, "Write": {"file_path"}, "NotebookEdit": {"file_path", "notebook_path"},
	"replace": {"file_path"}, "write_file": {"file_path"},
}

// filesChanged returns the files that the successful edits among the results changed. It records the calls
// among the blocks.
func (r *reader) filesChanged(blocks []eventlog.Block) (changed []string) {
	for _, b := range blocks {
		switch b := b.(type) {
		case eventlog.ToolCall:
			r.edits.Call(b.CallID, editors.Files(b.Name, []byte(b.Arguments)))
		case eventlog.ToolResult:
			if files := r.edits.Result(b.CallID); !b.IsError {
				changed = append(changed, files...)
			}
		}
	}
	return changed
}

// append appends a message with an envelope. It returns the event's id, or "" if there is none.
func (r *reader) append(session *transcript.SessionBuilder, rec *record, entry transcript.Entry) string {
	if parent, ok := r.follows(rec, entry.Native); ok {
		entry.Label(labelParent, transcript.Clean(parent))
	}
	if rec.isPrinted {
		return session.Append(entry)
	}
	n := session.Len()
	id := session.AppendRead(entry, func(event *eventlog.Event, m *eventlog.Message) jsontext.Value {
		around := envelopeOf(session.Labels())
		return around.carried(around.of(event, m))
	})
	seen := r.of(session).events
	switch session.Len() {
	case n: // a duplicate
		r.replayed(session, rec.UUID)
	case n + 1:
		if id != "" && rec.UUID != "" && seen[rec.UUID] == "" {
			seen[rec.UUID] = id
			if since := r.of(session).since; since != nil {
				since[rec.UUID] = true
			}
		}
	}
	return id
}

// follows returns the uuid of a record's parent, or of its nearest kept ancestor; ok is false if the record
// names none, or one too long for a label.
func (r *reader) follows(rec *record, native []byte) (parent string, ok bool) {
	if parent = r.parents.kept(rec.ParentUUID); parent == "" {
		_, ok = transcript.MemberOf(native, "parentUuid")
		return "", ok
	}
	return parent, len(parent) <= transcript.MaxLabelValue
}

// begin sets the session's labels from its first record; most other records repeat these fields.
func (r *reader) begin(session *transcript.SessionBuilder, rec *record) {
	if r.of(session).begun {
		return
	}
	r.of(session).begun = true
	session.Label(transcript.LabelSessionID, rec.SessionID)
	session.Label(transcript.LabelVersion, rec.Version)
	session.Label(transcript.LabelWorkingDirectory, rec.CWD)
	session.Label(transcript.LabelGitBranch, rec.GitBranch)
	session.Label(labelUserType, rec.UserType)
}

// role returns a message's role: RoleTool for a user record with nothing but results.
func role(kind string, blocks []eventlog.Block) eventlog.Role {
	if kind == "assistant" {
		return eventlog.RoleAssistant
	}
	for _, b := range blocks {
		if _, ok := b.(eventlog.ToolResult); !ok {
			return eventlog.RoleUser
		}
	}
	if len(blocks) == 0 {
		return eventlog.RoleUser
	}
	return eventlog.RoleTool
}

// session returns the session that a record belongs to.
func (r *reader) session(rec *record) *transcript.SessionBuilder {
	if !rec.IsSidechain {
		return r.main
	}
	return r.chains.session(rec)
}
