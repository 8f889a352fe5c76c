package opencode

import (
	"container/heap"
	"maps"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// reminders are elements that the harness and its plugins write in user messages without marking the part as
// synthetic.
var reminders = transcript.Tags("system-reminder")

func (r *reader) user(entry transcript.Entry, rec *record, parts []part) {
	m := &eventlog.Message{Role: eventlog.RoleUser}
	typed := false
	added := map[int]bool{}
	for i := range parts {
		p := &parts[i]
		kept := entry
		kept.ID, kept.Native = entry.ID+"/part-"+strconv.Itoa(i+1), rec.Parts[i]
		switch {
		case p.Type == "text" && p.Ignored && p.Metadata[systemMark].Value.Role == "system":
			m.Role, typed = eventlog.RoleSystem, true
			m.Blocks = append(m.Blocks, eventlog.Text{Text: p.Text})
		case p.Type == "text" && p.Ignored && p.Metadata[systemMark].Value.Compaction != nil:
			r.unread(kept, p.Metadata[systemMark].Value.Compaction)
		case p.Type == "text" && !p.Ignored:
			added[len(m.Blocks)] = p.Synthetic || transcript.Inserted(p.Text, reminders, nil)
			typed = typed || !added[len(m.Blocks)]
			m.Blocks = append(m.Blocks, eventlog.Text{Text: p.Text})
		case p.Type == "file" && p.MIME != "text/plain" && p.MIME != "application/x-directory":
			typed = true
			m.Blocks = append(m.Blocks, file(p.MIME, p.URL, rec.Parts[i]))
		case p.Type == "compaction":
			r.compaction(kept, p)
		default:
			// A text file's content is in a text part of its own, and a subtask is in the call that ran it.
			r.session.Keep(kept, "part-"+p.Type)
		}
	}
	if len(m.Blocks) == 0 {
		if len(parts) == 0 {
			r.session.Keep(entry, "empty-message")
		}
		return
	}
	if !typed {
		entry.Labels = map[string]string{transcript.LabelInjected: "true"}
	} else if m.Role == eventlog.RoleUser {
		entry.Beside(m.Blocks, func(i int) bool { return added[i] })
	}
	entry.Body = m
	r.append(entry)
}

// append appends a message, and records it for compactions that keep it.
func (r *reader) append(entry transcript.Entry) {
	if id := r.session.Append(entry); id != "" {
		r.places[messageID(id)] = append(r.places[messageID(id)], len(r.sent))
		r.sent = append(r.sent, id)
	}
}

// file makes media of a data URL, or of a URL that a provider could fetch; any other file becomes a provider
// block.
func file(mime, url string, native jsontext.Value) eventlog.Block {
	if b, ok := content.DataURL(url); ok {
		if m, isMedia := b.(eventlog.Media); isMedia {
			m.MIMEType = mime
			return m
		}
	}
	return eventlog.ProviderBlock{Provider: Name, JSON: transcript.Compact(native)}
}

// assistant appends each step of the reply, which is one request to the model, and after each step the
// results of its calls.
func (r *reader) assistant(entry transcript.Entry, rec *record, parts []part) {
	if len(parts) == 0 {
		r.session.Keep(entry, "failed-reply")
		return
	}
	steps := 0
	failed := rec.failed(parts)
	s := step{reader: r, entry: entry, model: rec.Info.ModelID, failed: failed}
	for i := range parts {
		p := &parts[i]
		switch p.Type {
		case "step-start":
			s.end()
			steps++
			s = step{reader: r, entry: entry, model: rec.Info.ModelID, failed: failed}
			if steps > 1 {
				s.entry.ID += "/step-" + strconv.Itoa(steps)
			}
		case "text":
			s.add(eventlog.Text{Text: p.Text})
		case "reasoning":
			if t := p.thinking(); t != (eventlog.Thinking{}) {
				s.add(t)
			}
		case "tool":
			s.call(p)
		case "step-finish":
			s.entry.Labels = p.Tokens.labels()
		case "file":
			s.add(file(p.MIME, p.URL, rec.Parts[i]))
		case "patch":
			s.files = append(s.files, p.Files.Value...)
		case "snapshot", "agent", "retry": // kept in the envelope
		default:
			kept := entry
			kept.ID, kept.Native = entry.ID+"/part-"+strconv.Itoa(i+1), rec.Parts[i]
			r.session.Keep(kept, "part-"+p.Type)
		}
	}
	s.end()
}

// step collects one request's reply.
type step struct {
	reader *reader
	entry  transcript.Entry
	model  string
	blocks []eventlog.Block
	calls  []*part
	ids    []string
	files  []string // that changed during the step
	failed string   // the error of a reply that is not sent
}

func (s *step) add(b eventlog.Block) { s.blocks = append(s.blocks, b) }

func (s *step) call(p *part) {
	id := s.reader.session.ReserveCallID(p.CallID)
	s.calls, s.ids = append(s.calls, p), append(s.ids, id)
	var input jsontext.Value
	if p.State != nil {
		input = p.State.Input
	}
	s.add(eventlog.ToolCall{CallID: id, Name: p.Tool, Arguments: transcript.UnwrapArguments(transcript.Compact(input))})
}

// end appends the step and its results. An empty step ended before the model wrote anything.
func (s *step) end() {
	if len(s.blocks) == 0 {
		return
	}
	s.entry.Body = &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: s.entry.ID, Model: s.model, Blocks: s.blocks}
	said := s.entry
	said.Labels = withFailed(transcript.WithFilesChanged(said.Labels, s.files), s.failed)
	s.reader.append(said)
	for i, p := range s.calls {
		if p.State == nil || !p.State.answered() {
			continue
		}
		answer := s.entry
		answer.ID = s.entry.ID + "/result-" + strconv.Itoa(i+1)
		answer.Labels = withFailed(transcript.WithFilesChanged(p.State.labels(), p.filesChanged()), s.failed)
		if t := at(p.State.Time.End); !t.IsZero() {
			answer.Time = t
		}
		answer.Body = &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{eventlog.ToolResult{
			CallID: s.ids[i], ToolName: p.Tool, Content: p.State.content(), IsError: p.State.failed(),
		}}}
		s.reader.append(answer)
		if when := p.State.Time.Compacted; when > 0 {
			s.reader.prunes++
			heap.Push(&s.reader.pruned, pruned{when: when, n: s.reader.prunes, callID: s.ids[i]})
		}
	}
	s.blocks = nil
}

const (
	// labelFailed is the error with which a reply ended, if OpenCode does not show the reply to the model, or
	// the value of reverted.
	labelFailed = Name + ".failed"
	// LabelExit is the exit code of a command that failed, although the harness records the call as
	// completed.
	LabelExit = Name + ".exit"
	// labelInterrupted is "true" on the result of an interrupted command: the user sees an error, the model
	// the output until then.
	labelInterrupted = Name + ".interrupted"
	// labelWithin is "true" on a compaction whose request is in a message with other content.
	labelWithin = Name + ".within"
	// systemMark is the key of contextd's own metadata in a text part.
	systemMark = "contextd"
)

func withFailed(labels map[string]string, failed string) map[string]string {
	if failed == "" {
		return labels
	}
	e := transcript.Entry{Labels: maps.Clone(labels)}
	e.Label(labelFailed, failed)
	return e.Labels
}

func (s *state) labels() map[string]string {
	var e transcript.Entry
	if exit := s.exit(); exit != "" {
		e.Label(LabelExit, exit)
	}
	if id := string(s.Metadata.Value.SessionID); id != "" && len(id) <= transcript.MaxLabelValue {
		e.Label(transcript.LabelSubagentSession, id)
	}
	if _, ok := s.interrupted(); ok {
		e.Label(labelInterrupted, "true")
	}
	return e.Labels
}

func (s *state) content() []eventlog.Block {
	var blocks []eventlog.Block
	text := s.Output
	if output, ok := s.interrupted(); ok {
		text = output
	} else if s.Status == "error" {
		text = s.Error
	}
	if text != "" {
		blocks = append(blocks, eventlog.Text{Text: text})
	}
	for _, a := range s.Attachments {
		if b, ok := content.DataURL(a.URL); ok {
			blocks = append(blocks, b)
		}
	}
	return blocks
}
