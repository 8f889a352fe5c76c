package codex

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// userMessage is the type of the event that shows in the terminal what the user said. It
// repeats an item; where there is none, it is all that the file has of the user's words.
const userMessage = "user_message"

// heard is what the user said since the model spoke last.
type heard struct {
	items []string
	// events are the ids of messages that were read from what the terminal showed.
	events map[string]string
}

func (h *heard) clear() { *h = heard{} }

// item takes the text of an item.
func (h *heard) item(text string) { h.items = append(h.items, compared(text)) }

// compared is a text as two records of it are compared: one of them may hold what the
// other had to replace.
func compared(text string) string { return strings.TrimSpace(transcript.Clean(text)) }

// said reports whether an item says what the terminal shows. Around the words there may be
// more in either of the two: the names of files and pictures.
func (h *heard) said(text string) bool {
	for _, item := range h.items {
		if strings.Contains(item, text) || item != "" && strings.Contains(text, item) {
			return true
		}
	}
	return false
}

// before is the event that says already what an item does; empty if none does, or if the item
// holds more.
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

// userMessage reads what the user said from what the terminal showed, and reports whether
// no item said it.
func (r *reader) userMessage(entry transcript.Entry, e *eventMessage) bool {
	said := string(e.Message)
	text := compared(said)
	if text == "" || r.heard.said(text) {
		return false
	}
	entry.Labels = map[string]string{labelItem: userMessage}
	if tells, inserted := insertedText(text); inserted || e.Kind != "" && e.Kind != "plain" {
		injectedLabels(entry.Labels, tells)
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

// shownInTerminal makes the record that shows in the terminal what was said.
func (e *envelope) shownInTerminal(event *eventlog.Event, kind, said string) jsontext.Value {
	return e.record(event.Time, "event_msg", transcript.Object("type", kind, "message", said))
}

// wordsOf are what a message says, without the marks that the harness puts around pictures.
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

// unmarked is a text without the marks of pictures that it begins or ends with.
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

// standing are the names of what the harness writes in the user's or the developer's name
// and that is valid until the next one, by their elements.
var standing = map[string]string{
	"environment_context": "environment", "user_instructions": "user_instructions", "permissions": "permissions",
	"INSTRUCTIONS": agentsFile, "collaboration_mode": "collaboration_mode", "model_switch": "model",
	"skills_instructions": "skills", "plugins_instructions": "plugins", "apps_instructions": "apps", "app-context": "app",
	"apps_context": "app", "personality_spec": "personality", "multi_agent_instructions": "agents",
}

// passing are the elements of what it writes once.
var passing = transcript.Tags(
	"turn_aborted", "user_shell_command", "skill", "subagent_notification", "hook_prompt", "agent_message",
	"goal_context", "context_window", "realtime_conversation",
)

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

// humanKind is the kind of a part of a message that a human wrote.
const humanKind = "user."

// contentKinds say of each part of a message what it is; early versions do not.
type contentKinds struct {
	Kinds []string `json:"content_item_kinds"`
}

// injected reports whether the harness wrote all parts of a message, and what it is about.
func (it *item) injected() (tells []string, ok bool) {
	texts, kinds := textsOf(it.Content), it.Kinds.Value.Kinds
	for _, text := range texts {
		of, inserted := insertedText(text)
		if !inserted && len(kinds) == 0 {
			return nil, false
		}
		tells = append(tells, of...)
	}
	if len(kinds) > 0 {
		return tells, !slices.ContainsFunc(kinds, func(k string) bool { return strings.HasPrefix(k, humanKind) })
	}
	return tells, len(texts) > 0 && !it.pictures()
}

// pictures reports whether the message holds something besides text.
func (it *item) pictures() bool {
	type part struct {
		Type string `json:"type"`
	}
	var parts []part
	return transcript.Decode(it.Content, &parts) == nil &&
		slices.ContainsFunc(parts, func(p part) bool { return p.Type == "input_image" })
}

// insertedText reports whether the harness wrote a text, and what it is about.
func insertedText(text string) (tells []string, ok bool) {
	text = strings.TrimSpace(text)
	if rest, agents := strings.CutPrefix(text, agentsHead); agents {
		_, behind, listed := strings.Cut(rest, "<INSTRUCTIONS>")
		if !listed {
			return []string{agentsFile}, true
		}
		text = "<INSTRUCTIONS>" + behind
	}
	names, ok := transcript.Elements(text, elements)
	for _, name := range names {
		if of := standing[name]; of != "" {
			tells = append(tells, of)
		}
	}
	return tells, ok
}

// injectedLabels are those of a message that the harness wrote.
func injectedLabels(labels map[string]string, tells []string) {
	labels[transcript.LabelInjected] = "true"
	if len(tells) > 0 {
		labels[transcript.LabelStanding] = strings.Join(slices.Compact(tells), "+")
	}
}

// textsOf are the texts of a content.
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
