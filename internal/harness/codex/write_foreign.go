package codex

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// begin writes the head of the session, if there is none yet.
func (w *writer) begin() {
	if !w.state.begun {
		w.meta("")
	}
}

func (w *writer) meta(instructions string) {
	w.state.begun = true
	var git any
	if branch := w.session.Labels[transcript.LabelGitBranch]; branch != "" {
		git = transcript.Object("branch", branch)
	}
	w.write(w.around.meta(&eventlog.Event{Time: transcript.OrEpoch(w.at)}, instructions, "originator", "contextd", "source", "cli", "git", git))
}

// foreign writes a message that was not read from a record of the harness, as items in the harness's form.
func (w *writer) foreign(i int, e *eventlog.Event, m *eventlog.Message) {
	if m.Role == eventlog.RoleSystem && !w.state.begun && len(m.Blocks) == 1 {
		if t, ok := m.Blocks[0].(eventlog.Text); ok {
			w.meta(t.Text)
			return
		}
	}
	w.begin()
	items := w.itemsOf(m)
	if len(items) == 0 {
		w.count(i, m)
		return
	}
	if m.Role == eventlog.RoleAssistant {
		w.turn(e, m)
	} else {
		w.state.reply = ""
	}
	for _, item := range items {
		v := w.around.record(transcript.OrEpoch(w.at), "response_item", item.payload)
		if item.notes != nil && !w.around.bare {
			v = transcript.With(v, "contextd", transcript.JSON(item.notes))
		}
		w.announce(e, &eventlog.Message{Role: m.Role, Blocks: item.blocks}, func() {
			w.write(v)
			w.lines[e.ID] = append(w.lines[e.ID], w.report.Entries)
		})
		w.items[e.ID] = append(w.items[e.ID], item.payload)
	}
	w.count(i, m)
}

// foreignItem is an item, the blocks that it is made of, and notes with what it has no place for.
type foreignItem struct {
	payload jsontext.Value
	blocks  []eventlog.Block
	notes   *notes
}

// itemsOf splits a message into items. Consecutive texts and images are one item.
func (w *writer) itemsOf(m *eventlog.Message) []foreignItem {
	var items []foreignItem
	var said []eventlog.Block
	say := func() {
		if parts, _ := phaseOf(said); len(parts) > 0 {
			items = append(items, foreignItem{payload: itemOf(m.Role, said, ""), blocks: said})
		}
		said = nil
	}
	for _, b := range m.Blocks {
		var item foreignItem
		switch b := b.(type) {
		case eventlog.Text, eventlog.Media:
			said = append(said, b)
			continue
		case eventlog.Thinking:
			if b.Text == "" && b.EncryptedContent == "" {
				w.lost["thinking that only its provider can read"]++
				continue
			}
			item.payload = reasoningOf(b)
		case eventlog.ToolCall:
			item.payload = callOf(b, "")
		case eventlog.ToolResult:
			item = w.resultOf(b)
		case eventlog.ProviderBlock:
			if _, phase := phaseOf([]eventlog.Block{b}); phase != nil {
				say()
				said = append(said, b)
				continue
			}
			if b.Provider != content.OpenAI || !strings.Contains(b.JSON, `"web_search_call"`) {
				w.lost["blocks of other providers"]++
				continue
			}
			item.payload = jsontext.Value(b.JSON)
		}
		say()
		item.blocks = []eventlog.Block{b}
		items = append(items, item)
	}
	say()
	return items
}

func (w *writer) resultOf(r eventlog.ToolResult) foreignItem {
	r.Content = content.Readable(r.Content, content.OpenAI)
	item := foreignItem{payload: outputOf(r, "")}
	guessed := false
	if len(r.Content) > 0 {
		if t, ok := r.Content[0].(eventlog.Text); ok {
			guessed = exitedWithError(t.Text)
		}
	}
	if guessed != r.IsError {
		item.notes = &notes{IsError: &r.IsError}
	}
	return item
}

// turn writes the record that names the model, if the model changes, or if the reader would otherwise join
// two replies into one.
func (w *writer) turn(e *eventlog.Event, m *eventlog.Message) {
	group := cmp.Or(m.GroupID, "event "+e.ID)
	if m.Model == w.state.model && (w.state.reply == "" || w.state.reply == group) {
		w.state.reply = group
		return
	}
	w.state.reply, w.state.model = group, m.Model
	if w.around.bare {
		return
	}
	w.write(w.around.record(transcript.OrEpoch(w.at), "turn_context", transcript.Object("cwd", w.around.cwd, "approval_policy", "on-request",
		"sandbox_policy", transcript.Object("type", "read-only"), "model", m.Model, "summary", "auto")))
}

// count writes the running total after the last part of a reply.
func (w *writer) count(i int, m *eventlog.Message) {
	if m.Role != eventlog.RoleAssistant {
		return
	}
	for j := i + 1; m.GroupID != "" && j < len(w.session.Events); j++ {
		if next, ok := w.session.Events[j].Body.(*eventlog.Message); ok && next.Role == eventlog.RoleAssistant {
			if next.GroupID == m.GroupID {
				return // its last part counts it
			}
			break
		}
	}
	if w.usage == nil {
		w.usage = transcript.ReplyUsage(w.session.Events)
	}
	labels := w.usage[i]
	if labels == nil || w.around.bare {
		return
	}
	u := transcript.UsageOf(labels)
	last := counts{Input: u.Prompt, Cached: u.CacheRead, CacheWrite: u.CacheWrite, Output: u.Output}
	total := &w.state.total
	total.Input += last.Input
	total.Cached += last.Cached
	total.CacheWrite += last.CacheWrite
	total.Output += last.Output
	w.write(w.around.record(transcript.OrEpoch(w.at), "event_msg", transcript.Object("type", "token_count",
		"info", transcript.Object("total_token_usage", total.json(), "last_token_usage", last.json()))))
	w.state.reply = ""
}

func (c counts) json() jsontext.Value {
	return transcript.Object("input_tokens", c.Input, "cached_input_tokens", c.Cached, "cache_write_input_tokens", c.CacheWrite,
		"output_tokens", c.Output, "reasoning_output_tokens", 0, "total_tokens", c.Input+c.Output)
}

// announce writes the record of a message by calling write, and the event that shows it in the terminal: the
// harness lists and shows only sessions with such events.
func (w *writer) announce(e *eventlog.Event, m *eventlog.Message, write func()) {
	said := textOfBlocks(m.Blocks)
	if m.Role == eventlog.RoleUser {
		said = wordsOf(m.Blocks)
	}
	if w.around.bare || said == "" {
		write()
		return
	}
	show := func(kind string) {
		w.write(w.around.shownInTerminal(&eventlog.Event{Time: transcript.OrEpoch(w.at)}, kind, said))
	}
	switch {
	case m.Role == eventlog.RoleAssistant:
		show("agent_message")
		write()
	case m.Role == eventlog.RoleUser && e.Labels[transcript.LabelInjected] == "":
		write()
		show(userMessage)
	default:
		write()
	}
}

// compaction writes a compaction: the harness's own unchanged, any other as a list of the kept messages and
// the summary.
func (w *writer) compaction(c *eventlog.Compaction) {
	w.state.reply = ""
	var native record
	if c.NativeJSON != "" && transcript.Decode([]byte(c.NativeJSON), &native) == nil && native.boundary() {
		w.write(transcript.Compacted([]byte(c.NativeJSON)))
		return
	}
	w.begin()
	if c.Summary == "" {
		w.unread(c)
		return
	}
	var history []jsontext.Value
	for _, id := range c.KeptEventIDs {
		for _, item := range w.items[id] {
			if w.report.Again(len(item)) {
				history = append(history, item)
			}
		}
	}
	history = append(history, itemOf(eventlog.RoleUser, []eventlog.Block{eventlog.Text{Text: c.Summary}}, ""))
	v := w.around.record(transcript.OrEpoch(w.at), compactedType, transcript.Object("message", c.Summary, "replacement_history", history))
	if said := transcript.JSON(notesOf(c)); len(said) > len("{}") && !w.around.bare {
		v = transcript.With(v, "contextd", transcript.Object("compaction", said))
	}
	w.write(v)
}

// unread writes a compaction without a summary as the event for the terminal, which the harness ignores. If
// it wrote a list, the model would no longer see what was dropped, and no summary of it.
func (w *writer) unread(c *eventlog.Compaction) {
	v := w.around.record(transcript.OrEpoch(w.at), "event_msg", transcript.Object("type", contextCompacted))
	n := notesOf(c)
	for _, id := range c.KeptEventIDs {
		n.Kept = append(n.Kept, w.lines[id]...)
	}
	w.write(transcript.With(v, "contextd", transcript.JSON(notes{Compaction: n})))
}

func notesOf(c *eventlog.Compaction) *compactionNotes {
	return &compactionNotes{Provenance: transcript.ProvenanceOf(c), PreTokens: c.PreTokens, PostTokens: c.PostTokens}
}
