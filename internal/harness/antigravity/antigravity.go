// Package antigravity reads the transcripts of Antigravity: JSON Lines with one step of the agent on each line.
// docs/harness/antigravity.md describes the format and the mapping.
package antigravity

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Name of the harness.
const Name = "antigravity"

// Harness is Antigravity, the editor and the command line.
var Harness = transcript.Harness{
	Name: Name, Aliases: []string{"agy"}, Detect: detect, Read: read,
	Branches: &transcript.Branches{Left: left, Follows: follows},
}

// editors are the harness's own tools that change files.
var editors = transcript.Editors{"write_to_file": {"TargetFile"}, "replace_file_content": {"TargetFile"}, "multi_replace_file_content": {"TargetFile"}}

// Types of steps that are neither results nor messages of the harness.
const (
	typeInput      = "USER_INPUT"
	typeReply      = "PLANNER_RESPONSE"
	typeCheckpoint = "CHECKPOINT"
	typeError      = "ERROR_MESSAGE"
)

func detect(p transcript.Probe) bool {
	return p.Has("step_index", "source", "type") && p.Is("source", "USER_EXPLICIT", "MODEL", "SYSTEM")
}

type record struct {
	Step     int64           `json:"step_index"`
	Source   string          `json:"source"`
	Type     string          `json:"type"`
	Status   transcript.Word `json:"status"`
	Time     transcript.Word `json:"created_at"`
	Content  string          `json:"content"`
	Thinking string          `json:"thinking"`
	Error    transcript.Word `json:"error"`
	ExitCode int64           `json:"exit_code"`
	Calls    []struct {
		Name string         `json:"name"`
		Args jsontext.Value `json:"args"`
	} `json:"tool_calls"`
	Truncated []string `json:"truncated_fields"`
}

// answers reports whether the step is the outcome of a call.
func (r *record) answers() bool { return r.Source == "MODEL" && r.Type != typeReply }

// at is a message and its step. most is the largest step up to it.
type at struct {
	step, most int64
	id         string
}

// pending is an outcome that may have been written before its call.
type pending struct {
	entry transcript.Entry
	rec   record
}

type reader struct {
	out     *transcript.Builder
	session *transcript.SessionBuilder
	edits   transcript.OpenEdits
	model   string
	// open are the calls of the last reply that have no outcome yet.
	open []string
	held *pending
	// messages are those that no rewind took back.
	messages []at
	compared int
	lines    map[[sha256.Size]byte]bool
	cut      int
}

func read(in io.Reader) (transcript.Transcript, error) {
	out := transcript.NewBuilder(Name, in)
	r := &reader{out: out, session: out.Session(""), edits: transcript.OpenEdits{}, lines: map[[sha256.Size]byte]bool{}}
	r.session.Label(transcript.LabelHarness, Name)
	err := transcript.ReadLines(in, out.Warn, r.record)
	if r.held != nil {
		out.Warn(r.held.entry.Line, "the outcome of a call that is not before it was left out: the next line may have the call")
	}
	if r.cut > 0 {
		out.Warn(0, "%d steps are cut; transcript_full.jsonl of the same folder has the whole", r.cut)
	}
	return out.Finish(err)
}

func (r *reader) record(l transcript.Record) {
	// When it goes on with a conversation, the harness may write steps again.
	line := sha256.Sum256(l.JSON)
	if r.lines[line] {
		r.out.DropDuplicate()
		return
	}
	r.lines[line] = true
	next := pending{entry: transcript.Entry{Line: l.Line, ID: transcript.PositionID(l), Native: l.JSON}}
	if err := transcript.Decode(l.JSON, &next.rec); err != nil {
		r.session.Unreadable(next.entry, err)
		return
	}
	next.entry.Time = transcript.ParseTime(string(next.rec.Time))
	if len(next.rec.Truncated) > 0 {
		r.cut++
	}
	held := r.held
	r.held = nil
	switch late := held != nil && next.rec.Type == typeReply && next.rec.Step < held.rec.Step; {
	case late:
		r.step(next)
		r.step(*held)
		return
	case held != nil:
		r.step(*held)
	}
	if next.rec.answers() && len(r.open) == 0 {
		next.entry.Native = bytes.Clone(next.entry.Native)
		r.held = &next
		return
	}
	r.step(next)
}

func (r *reader) step(p pending) {
	entry, rec := p.entry, &p.rec
	switch {
	case rec.Type == typeReply:
		r.reply(entry, rec)
	case rec.answers(), rec.Type == typeError && rec.Content != "" && len(r.open) > 0:
		r.outcome(entry, rec)
	case rec.Content == "" && rec.Error != "":
		r.session.Custom(entry, "error")
	case rec.Content == "":
		r.out.Skip(rec.Type)
	case rec.Type == typeInput && rec.Source == "USER_EXPLICIT":
		r.input(entry, rec)
	case rec.Type == typeCheckpoint:
		r.checkpoint(entry, rec)
	default:
		entry.Label(transcript.LabelInjected, "true")
		if rec.Type == "CONVERSATION_HISTORY" || rec.Type == "KNOWLEDGE_ARTIFACTS" {
			entry.Label(transcript.LabelStanding, strings.ToLower(rec.Type))
		}
		r.say(entry, rec, &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: rec.Content}}})
	}
}

func (r *reader) say(entry transcript.Entry, rec *record, m *eventlog.Message) {
	entry.Body = m
	if id := r.session.Append(entry); id != "" {
		most := rec.Step
		if n := len(r.messages); n > 0 {
			most = max(most, r.messages[n-1].most)
		}
		r.messages = append(r.messages, at{step: rec.Step, most: most, id: id})
	}
}

func (r *reader) reply(entry transcript.Entry, rec *record) {
	r.open = nil
	m := &eventlog.Message{Role: eventlog.RoleAssistant, Model: r.model}
	if rec.Thinking != "" {
		m.Blocks = append(m.Blocks, eventlog.Thinking{Text: rec.Thinking})
	}
	if rec.Content != "" {
		m.Blocks = append(m.Blocks, eventlog.Text{Text: rec.Content})
	}
	for i, c := range rec.Calls {
		id := fmt.Sprintf("call-%s-%d", entry.ID, i+1)
		call := eventlog.ToolCall{CallID: id, Name: c.Name, Arguments: r.out.Arguments(entry.Line, id, c.Args)}
		r.edits.Call(id, files(call))
		r.open = append(r.open, id)
		m.Blocks = append(m.Blocks, call)
	}
	if len(m.Blocks) == 0 {
		r.session.Keep(entry, "empty-reply")
		return
	}
	r.say(entry, rec, m)
}

// files are those that a call changes. In the shorter one of the two files, each argument is JSON in a string.
func files(call eventlog.ToolCall) []string {
	named := editors.Files(call.Name, []byte(call.Arguments))
	for i, file := range named {
		if inner, ok := transcript.Text([]byte(file)); ok {
			named[i] = inner
		}
	}
	return named
}

func (r *reader) outcome(entry transcript.Entry, rec *record) {
	result := eventlog.ToolResult{IsError: rec.failed()}
	if rec.Content != "" {
		result.Content = []eventlog.Block{eventlog.Text{Text: rec.Content}}
	}
	if len(r.open) > 0 {
		result.CallID, r.open = r.open[0], r.open[1:]
	}
	if changed := r.edits.Result(result.CallID); !result.IsError {
		entry.Labels = transcript.WithFilesChanged(entry.Labels, changed)
	}
	r.say(entry, rec, &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{result}})
}

// failed reports whether a call failed. Older versions have the exit code of a command only in the text, before the output.
func (r *record) failed() bool {
	head, _, _ := strings.Cut(r.Content, "Output:")
	return r.Type == typeError || r.Status == "ERROR" || r.ExitCode != 0 || r.Type == "RUN_COMMAND" && strings.Contains(head, "The command failed")
}

// input reads a human's message: the request, and elements that the harness adds.
func (r *reader) input(entry transcript.Entry, rec *record) {
	said, added := asked(rec.Content)
	if model, ok := modelIn(added); ok {
		r.model = model
	}
	blocks := []eventlog.Block{eventlog.Text{Text: said}, eventlog.Text{Text: added}}
	entry.Beside(blocks, func(i int) bool { return i == 1 })
	if n := r.reaching(rec.Step); n < len(r.messages) {
		r.messages = r.messages[:n]
		kept := ""
		if n > 0 {
			kept = r.messages[n-1].id
		}
		entry.Label(labelKept, kept)
	}
	r.open = nil
	r.say(entry, rec, &eventlog.Message{Role: eventlog.RoleUser, Blocks: blocks})
}

// asked splits a message into the human's words and what the harness added after them.
func asked(text string) (said, added string) {
	const open, end = "<USER_REQUEST>", "</USER_REQUEST>"
	last := strings.LastIndex(text, end)
	if !strings.HasPrefix(text, open) || last < 0 {
		return text, ""
	}
	added = strings.TrimSpace(text[last+len(end):])
	if added != "" && !strings.HasPrefix(added, "<") {
		return text, ""
	}
	return strings.Trim(text[len(open):last], "\n"), added
}

// modelIn finds the name of the model that the user chose.
func modelIn(added string) (name string, ok bool) {
	_, change, _ := strings.Cut(added, "The user changed setting `Model Selection` from ")
	change, _, _ = strings.Cut(change, "\n")
	_, name, ok = strings.Cut(change, " to ")
	name, _, _ = strings.Cut(name, ". ")
	return strings.TrimSuffix(name, "."), ok
}

// reaching returns the index of the first message of a step or a later one; the number of messages if there is none.
func (r *reader) reaching(step int64) int {
	return sort.Search(len(r.messages), func(i int) bool { return r.messages[i].most >= step })
}

// mostCompared bounds how many messages are compared with all checkpoints: a file may have very many of both.
const mostCompared = 1 << 26

// checkpoint replaces the steps before it; later ones may be before it in the file.
func (r *reader) checkpoint(entry transcript.Entry, rec *record) {
	c := &eventlog.Compaction{Summary: rec.Content, NativeJSON: transcript.Compact(entry.Native)}
	for _, m := range r.messages[r.reaching(rec.Step+1):] {
		if r.compared++; r.compared > mostCompared {
			r.out.Warn(entry.Line, "there are too many checkpoints to find all that they kept")
			break
		}
		if m.step > rec.Step {
			c.KeptEventIDs = append(c.KeptEventIDs, m.id)
		}
	}
	r.session.Boundary(entry, c)
}

// labelKept, on a message with which the user went back, is the id of the last message before it that stays; empty if
// none does.
const labelKept = Name + ".kept"

func follows(e eventlog.Event) bool {
	_, back := e.Labels[labelKept]
	return back
}

// left returns the ids of the messages that the user took back; nil if there are none.
func left(events []eventlog.Event) map[string]bool {
	var gone map[string]bool
	var there []string
	places := map[string]int{} // in there, and of messages that were taken back
	for _, e := range events {
		if _, ok := e.Body.(*eventlog.Message); !ok {
			continue
		}
		if follows(e) {
			kept := 0
			if place, ok := places[e.Labels[labelKept]]; ok && place < len(there) && there[place] == e.Labels[labelKept] {
				kept = place + 1
			}
			if gone == nil {
				gone = map[string]bool{}
			}
			for _, id := range there[kept:] {
				gone[id] = true
			}
			there = there[:kept]
		}
		places[e.ID] = len(there)
		there = append(there, e.ID)
	}
	return gone
}
