// Package opencode reads and writes sessions as OpenCode exports and imports them: one JSON object with a list of
// messages, in which a call and its result are one part. docs/harness/opencode.md describes the format and the
// mapping.
package opencode

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Name of the harness.
const Name = "opencode"

// redacted replaces ids in files from which ids were removed.
const redacted = "REDACTED"

// Harness is OpenCode.
var Harness = transcript.Harness{
	Name: Name, Detect: detect, Instead: instead, Read: read, Write: write, NotKept: notKept, LabelUnseen: labelFailed,
}

// instead recognises the files in which the harness keeps parts of a session.
func instead(p transcript.Probe) string {
	if p.Has("id", "sessionID", "messageID", "type") || p.Has("id", "sessionID", "role", "time") || p.Has("id", "projectID", "directory", "time") {
		return `this is a part of what OpenCode keeps of a session: import what "opencode export" writes`
	}
	return ""
}

type reader struct {
	out     *transcript.Builder
	session *transcript.SessionBuilder
	headed  bool // info was read
	count   int
	pruned  prunings
	prunes  int // results that were pruned
	// pending is a compaction whose summary is expected in the next reply.
	pending *pending
	sent    []string // ids of the events that are messages, in order
	// places are the indexes in sent of the events of each message.
	places map[string][]int
	// again are the messages that repeat, after a compaction that contextd wrote, what it kept; they are not
	// read.
	again  map[string]bool
	render renderer
	// begins and ends are the numbers of the events before and after a message.
	begins, ends map[string]int
	revert       revert
}

func (r *reader) field(name string, value jsontext.Value, line int) {
	if name != "info" {
		r.out.Skip("member " + name)
		return
	}
	var session struct {
		ID        string `json:"id"`
		Version   string `json:"version"`
		Directory string `json:"directory"`
		ParentID  string `json:"parentID"`

		Revert transcript.Maybe[revert] `json:"revert"`
	}
	if err := transcript.Decode(value, &session); err != nil {
		r.out.Warn(line, "unexpected shape of the session's info: %v", err)
		return
	}
	if r.headed {
		r.out.Warn(line, "the session's info occurs again; the first one was read")
		return
	}
	r.headed, r.revert = true, session.Revert.Value
	r.session.Label(transcript.LabelSessionID, session.ID)
	r.session.Label(transcript.LabelVersion, session.Version)
	r.session.Label(transcript.LabelWorkingDirectory, session.Directory)
	r.session.Label(transcript.LabelParentSession, session.ParentID)
	r.render.session, r.render.directory = session.ID, session.Directory
	base := sessionInfo(session.ID, session.Version, session.Directory, session.ParentID)
	r.session.SessionEnvelope(transcript.Difference(base, value))
}

func (r *reader) message(raw jsontext.Value, line int) {
	r.count++
	entry := transcript.Entry{Line: line, Native: raw, ID: "msg-" + strconv.Itoa(r.count)}
	var rec record
	if err := transcript.Decode(raw, &rec); err != nil {
		r.session.Unreadable(entry, err)
		return
	}
	if r.again[rec.Info.ID] {
		return
	}
	if rec.Info.ID != "" && rec.Info.ID != redacted {
		entry.ID = rec.Info.ID
	}
	entry.Time = at(rec.Info.Time.Created)
	r.prune(rec.Info.Time.Created)
	parts := make([]part, len(rec.Parts))
	for i, p := range rec.Parts {
		if err := transcript.Decode(p, &parts[i]); err != nil {
			r.session.Unreadable(entry, err)
			return
		}
	}
	summary := rec.Info.Role == "assistant" && string(rec.Info.Summary) == "true"
	if !summary {
		r.flush()
	}
	from := r.session.Len()
	r.begins[rec.Info.ID] = from
	defer func() { r.ends[rec.Info.ID] = r.session.Len() }()
	switch {
	case summary:
		r.summary(entry, parts)
		return
	case rec.Info.Role == "user":
		r.user(entry, &rec, parts)
	case rec.Info.Role == "assistant":
		r.assistant(entry, &rec, parts)
	default:
		r.session.Keep(entry, "role-"+rec.Info.Role)
	}
	r.envelope(from, rec.Info.Role, raw)
}

// envelope stores the difference between a message and what its events give. While a compaction is pending,
// its request may be in the same message.
func (r *reader) envelope(from int, role string, raw jsontext.Value) {
	events := r.session.Since(from)
	switch {
	case r.pending != nil && len(events) == 0:
		r.pending.request = raw
		return
	case r.pending != nil:
		r.pending.entry.Labels = map[string]string{labelWithin: "true"}
	}
	if len(events) == 0 || whole(events) != "" {
		return
	}
	if _, ok := events[0].Body.(*eventlog.Compaction); ok {
		return // contextd wrote it
	}
	base := r.render.message(events, resultsOf(events))
	r.session.Envelope(from, transcript.Difference(base, raw, transcript.FieldsOf(notKept, "message/"+role)...))
}

// notKept is what a session written again may lack.
var notKept = []transcript.NotKept{
	{Entry: "message/user", Field: "info.summary", Reason: "the files that the turn changed, whole and often most of a file's bytes; the calls show what changed"},
	{Entry: "message/assistant", Field: "parts[].state.metadata", Reason: "what a tool shows the user, mostly its output once more; an exit code and a subagent's session are labels"},
	{Entry: "member/*", Reason: "members of the file besides info and messages"},
}

// The rows of notKept for messages of a user and of a model.
var (
	notKeptOfUser  = transcript.FieldsOf(notKept, "message/user")
	notKeptOfModel = transcript.FieldsOf(notKept, "message/assistant")
)

// record is one message of a session with its parts.
type record struct {
	Info  info             `json:"info"`
	Parts []jsontext.Value `json:"parts"`
}

type info struct {
	ID      string         `json:"id"`
	Role    string         `json:"role"`
	ModelID string         `json:"modelID"`
	Summary jsontext.Value `json:"summary"` // true on a compaction's reply; an object on user messages
	Error   jsontext.Value `json:"error"`
	Time    struct {
		Created   int64 `json:"created"`
		Completed int64 `json:"completed"`
	} `json:"time"`
}

// failed returns the error of a reply that the harness does not send to the model: of every failed reply except an
// aborted one that has content.
func (r *record) failed(parts []part) string {
	var e struct {
		Name string `json:"name"`
	}
	if len(r.Info.Error) == 0 || string(r.Info.Error) == "null" {
		return ""
	}
	if transcript.Decode(r.Info.Error, &e) != nil || e.Name == "" || len(e.Name) > transcript.MaxLabelValue {
		e.Name = "error"
	}
	if e.Name != "MessageAbortedError" {
		return e.Name
	}
	for i := range parts {
		if t := parts[i].Type; t != "step-start" && t != "reasoning" {
			return ""
		}
	}
	return e.Name
}

type part struct {
	Type      string                                    `json:"type"`
	ID        string                                    `json:"id"`
	Text      string                                    `json:"text"`
	Synthetic bool                                      `json:"synthetic"`
	Ignored   bool                                      `json:"ignored"`
	CallID    string                                    `json:"callID"`
	Tool      string                                    `json:"tool"`
	State     *state                                    `json:"state"`
	Metadata  map[string]transcript.Maybe[partMetadata] `json:"metadata"`
	Auto      *bool                                     `json:"auto"` // of compaction
	TailStart string                                    `json:"tail_start_id"`
	TailOld   string                                    `json:"tailStartID"` // the name in older versions
	MIME      string                                    `json:"mime"`        // of file
	URL       string                                    `json:"url"`
	Tokens    tokens                                    `json:"tokens"` // of step-finish
	Files     transcript.Maybe[[]string]                `json:"files"`  // of patch
}

// partMetadata is what a provider needs again with a part. Members that are not a provider's are decoded as
// empty.
type partMetadata struct {
	Signature        string `json:"signature"`
	ItemID           string `json:"itemId"` // OpenAI's id of encrypted reasoning
	EncryptedContent string `json:"reasoningEncryptedContent"`
	RedactedData     string `json:"redactedData"`
	// Of a host of models.
	Details jsontext.Value `json:"reasoning_details"`
	Blocks  jsontext.Value `json:"thinking_blocks"`
	// Of contextd's own: the role of a message that it wrote in a part that no model sees, and the fields of
	// a compaction that the harness has no place for.
	Role       string              `json:"role"`
	Compaction *compactionMetadata `json:"compaction"`
}

type compactionMetadata struct {
	transcript.Provenance
	PreTokens  *uint64 `json:"preTokens"`
	PostTokens *uint64 `json:"postTokens"`
	// Kept are the ids of the kept messages if they are not a tail; Again are those of the messages that
	// repeat them after the compaction.
	Kept  []string `json:"kept"`
	Again []string `json:"again"`
}

type state struct {
	Status      string                     `json:"status"`
	Input       jsontext.Value             `json:"input"`
	Output      string                     `json:"output"`
	Error       string                     `json:"error"`
	Attachments []attachment               `json:"attachments"`
	Metadata    transcript.Maybe[metadata] `json:"metadata"`
	Time        struct {
		Start     int64 `json:"start"`
		End       int64 `json:"end"`
		Compacted int64 `json:"compacted"`
	} `json:"time"`
}

type attachment struct {
	MIME string `json:"mime"`
	URL  string `json:"url"`
}

type tokens struct {
	Input  transcript.Count `json:"input"`
	Output transcript.Count `json:"output"`
	Cache  struct {
		Read  transcript.Count `json:"read"`
		Write transcript.Count `json:"write"`
	} `json:"cache"`
}

func (t tokens) labels() map[string]string {
	return transcript.Usage{
		Prompt: t.Input + t.Cache.Read + t.Cache.Write, CacheRead: t.Cache.Read, CacheWrite: t.Cache.Write, Output: t.Output,
	}.Labels()
}

// answered reports whether the call has ended.
func (s *state) answered() bool { return s.Status == "completed" || s.Status == "error" }

// failed reports whether the call failed, by its state or by the exit code of a command.
func (s *state) failed() bool {
	_, interrupted := s.interrupted()
	return s.Status == "error" && !interrupted || s.exit() != ""
}

// interrupted returns the output of a tool up to its interruption. The model gets that output, and no error.
func (s *state) interrupted() (output string, ok bool) {
	m := s.Metadata.Value
	if s.Status != "error" || !m.Interrupted.Value || m.Output.Value == nil {
		return "", false
	}
	return *m.Output.Value, true
}

// exit returns the exit code of a command that failed, although the harness records the call as completed.
func (s *state) exit() string {
	if code := s.Metadata.Value.Exit.Value; s.Status == "completed" && code != 0 {
		return strconv.Itoa(code)
	}
	return ""
}

// metadata is display data of a tool; most of it is not read.
type metadata struct {
	Exit      transcript.Maybe[int] `json:"exit"`
	SessionID transcript.Word       `json:"sessionId"` // of the subagent that the tool ran
	// Interrupted is set if the tool was interrupted; then Output is its output until then.
	Interrupted transcript.Maybe[bool]    `json:"interrupted"`
	Output      transcript.Maybe[*string] `json:"output"`
}

func (p *part) thinking() eventlog.Thinking {
	t := eventlog.Thinking{Text: p.Text}
	for _, one := range p.Metadata {
		m := one.Value
		t.Signature = max(t.Signature, m.Signature, content.HostSeal(m.Details, m.Blocks))
		t.EncryptedContent = max(t.EncryptedContent, m.EncryptedContent)
		t.RedactedData = max(t.RedactedData, m.RedactedData)
		if m.EncryptedContent != "" && content.IsReasoningID(m.ItemID) && m.ItemID != content.MadeUpReasoningID(m.EncryptedContent) {
			t.Signature = m.ItemID
		}
	}
	return t
}

// at converts a time of the file, in milliseconds of the epoch.
func at(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// editors are OpenCode's own, except apply_patch.
var editors = transcript.Editors{"edit": {"filePath"}, "multiedit": {"filePath"}, "write": {"filePath"}}

// filesChanged returns the files that a completed call changed.
func (p *part) filesChanged() []string {
	if p.State.failed() {
		return nil
	}
	if p.Tool != "apply_patch" && p.Tool != "patch" {
		return editors.Files(p.Tool, p.State.Input)
	}
	var input struct {
		Patch string `json:"patchText"`
	}
	if transcript.Decode(p.State.Input, &input) != nil {
		return nil
	}
	return transcript.PatchFiles(input.Patch)
}
