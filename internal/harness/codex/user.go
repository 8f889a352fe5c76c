package codex

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// userMessage is the type of the event that shows a user's message in the terminal. It repeats an item; if
// there is none, it is the only record of what the user wrote.
const userMessage = "user_message"

// heard has the user's messages since the model's last item.
type heard struct {
	items []string // the texts of the newest mostHeard, by compared
	// events are the ids of the messages that were read from userMessage events, by compared text.
	events map[string]string
}

func (h *heard) clear() { *h = heard{} }

// mostHeard is how many messages a text is compared with. The two records of a message are near each other, and a file
// may have very many messages without an item of the model between them.
const mostHeard = 32

// item adds the text of an item.
func (h *heard) item(text string) {
	h.items = append(h.items[max(0, len(h.items)-mostHeard+1):], compared(text))
}

// compared normalises a text for comparing two records of it: in one of them characters may have been
// replaced.
func compared(text string) string { return strings.TrimSpace(transcript.Clean(text)) }

// said reports whether an item has the text that the terminal shows. Either may have more around it, such as
// the names of files and pictures.
func (h *heard) said(text string) bool {
	for _, item := range h.items {
		if strings.Contains(item, text) || item != "" && strings.Contains(text, item) {
			return true
		}
	}
	return false
}

// before returns the id of the message that has the same text as an item's blocks; empty if there is none, or if
// the item has more blocks.
func (h *heard) before(blocks []eventlog.Block) string {
	if len(blocks) != 1 {
		return ""
	}
	t, ok := blocks[0].(eventlog.Text)
	if !ok {
		return ""
	}
	return h.events[compared(t.Text)]
}

// userMessage reads a user's message from the event for the terminal, and returns false if an item has it.
func (r *reader) userMessage(entry transcript.Entry, e *eventMessage) bool {
	said := string(e.Message)
	text := compared(said)
	if text == "" || r.heard.said(text) {
		return false
	}
	entry.Labels = map[string]string{labelItem: userMessage}
	if about, inserted := insertedText(text); inserted || e.Kind != "" && e.Kind != "plain" {
		injectedLabels(entry.Labels, about)
	}
	entry.Body = &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: said}}}
	r.reply = ""
	if id := r.append(entry); id != "" {
		if r.heard.events == nil {
			r.heard.events = map[string]string{}
		}
		r.heard.events[text] = id
	}
	r.heard.item(text)
	return true
}

// shownInTerminal makes the event that shows a message in the terminal.
func (e *envelope) shownInTerminal(event *eventlog.Event, kind, said string) jsontext.Value {
	return e.record(event.Time, "event_msg", transcript.Object("type", kind, "message", said))
}

// wordsOf returns the text of a message without the marks that the harness puts around pictures.
func wordsOf(blocks []eventlog.Block) string {
	var words []string
	for _, b := range blocks {
		t, ok := b.(eventlog.Text)
		if !ok {
			continue
		}
		if said := unmarked(t.Text); said != "" {
			words = append(words, said)
		}
	}
	return strings.Join(words, "\n")
}

// unmarked returns a text without the lines that mark pictures.
func unmarked(text string) string {
	if !strings.Contains(text, "<image") && !strings.Contains(text, "</image>") {
		return text
	}
	var lines []string
	for line := range strings.Lines(text) {
		mark := strings.TrimSpace(line)
		if strings.HasPrefix(mark, "<image") && strings.HasSuffix(mark, ">") || mark == "</image>" {
			continue
		}
		lines = append(lines, line)
	}
	return strings.TrimSpace(strings.Join(lines, ""))
}

// standing maps elements that the harness writes in user or developer messages to a standing name: their content is
// valid until the next one.
var standing = map[string]string{
	"environment_context": "environment", "user_instructions": "user_instructions", "permissions": "permissions",
	"INSTRUCTIONS": agentsFile, "collaboration_mode": "collaboration_mode", "model_switch": "model",
	"skills_instructions": "skills", "plugins_instructions": "plugins", "apps_instructions": "apps", "app-context": "app",
	"recommended_plugins": "recommended_plugins", "apps_context": "app", "personality_spec": "personality", "multi_agent_instructions": "agents",
}

// passing are elements that the harness writes once, without a standing name.
var passing = transcript.Tags(
	"turn_aborted", "user_shell_command", "skill", "subagent_notification", "hook_prompt", "agent_message",
	"goal_context", "context_window", "realtime_conversation", "codex_internal_context", "extension_context",
	"agent_message_board_notification", "token_budget",
)

// elements are the names of standing and passing elements. A user's words are in a text of their own, never between
// these.
var elements = func() map[string]bool {
	all := map[string]bool{}
	for name := range passing {
		all[name] = true
	}
	for name := range standing {
		all[name] = true
	}
	return all
}()

const (
	agentsFile = "AGENTS.md"
	agentsHead = "# AGENTS.md instructions"
)

// warnings begin texts that earlier versions wrote in the user's name.
var warnings = []string{
	"Warning: apply_patch was requested via ", "Warning: The maximum number of unified exec processes you can keep open is",
	"Warning: Your account was flagged for potentially high-risk cyber activity",
}

// external begins the names of elements that hold what a client of the harness adds.
const external = "<external_"

// humanKind begins the kinds of a message's parts that a human wrote, except for scheduled.
const (
	humanKind = "user."
	scheduled = "user.heartbeat"
)

// contentKinds are the kinds of a message's parts. Early versions do not write them.
type contentKinds struct {
	Kinds []string `json:"content_item_kinds"`
}

// injected reports whether the harness wrote all parts of a message; about are the standing names of its
// elements.
func (it *item) injected() (about []string, ok bool) {
	texts, kinds := textsOf(it.Content), it.Kinds.Value.Kinds
	for _, text := range texts {
		of, inserted := insertedText(text)
		if !inserted && len(kinds) == 0 {
			return nil, false
		}
		about = append(about, of...)
	}
	if len(kinds) > 0 {
		return about, !slices.ContainsFunc(kinds, func(k string) bool { return strings.HasPrefix(k, humanKind) && k != scheduled })
	}
	return about, len(texts) > 0 && !it.pictures()
}

// pictures reports whether the message holds pictures or sound.
func (it *item) pictures() bool {
	type part struct {
		Type string `json:"type"`
	}
	var parts []part
	return transcript.Decode(it.Content, &parts) == nil &&
		slices.ContainsFunc(parts, func(p part) bool { return p.Type == "input_image" || p.Type == "input_audio" })
}

// Wrote reports whether Codex wrote a text in the user's name, for readers of what programs make of its rollouts;
// standing is the name under which the text holds until the next one, if it does.
func Wrote(text string) (standing string, ok bool) {
	about, ok := insertedText(text)
	return strings.Join(slices.Compact(about), "+"), ok
}

// insertedText reports whether the harness wrote a text; about are the standing names of its elements.
func insertedText(text string) (about []string, ok bool) {
	text = strings.TrimSpace(text)
	rest, agents := strings.CutPrefix(text, agentsHead)
	if agents && (rest == "" || rest[0] == '\n' || strings.HasPrefix(rest, " for ")) {
		const end = "</INSTRUCTIONS>" // the last one is the harness's: the files may hold some, too
		text = ""
		if at := strings.LastIndex(rest, end); at >= 0 {
			text = strings.TrimSpace(rest[at+len(end):])
		}
		if about = []string{agentsFile}; text == "" {
			return about, true
		}
	}
	if slices.ContainsFunc(warnings, func(begin string) bool { return strings.HasPrefix(text, begin) }) {
		return about, true
	}
	if open, _, ok := strings.Cut(text, ">"); ok && strings.HasPrefix(open, external) && strings.HasSuffix(text, "</"+open[1:]+">") {
		return about, true
	}
	names, ok := transcript.Elements(text, elements, elements)
	if !ok {
		return nil, false
	}
	for _, name := range names {
		if of := standing[name]; of != "" {
			about = append(about, of)
		}
	}
	return about, true
}

// injectedLabels sets the labels of a message that the harness wrote.
func injectedLabels(labels map[string]string, about []string) {
	labels[transcript.LabelInjected] = "true"
	if len(about) > 0 {
		labels[transcript.LabelStanding] = strings.Join(slices.Compact(about), "+")
	}
}

// textsOf returns the texts of a content.
func textsOf(raw jsontext.Value) []string {
	var parts []struct {
		Text string `json:"text"`
	}
	if text, ok := transcript.Text(raw); ok {
		return []string{text}
	} else if len(raw) == 0 || transcript.Decode(raw, &parts) != nil {
		return nil
	}
	var texts []string
	for _, p := range parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return texts
}
