package codex

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

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
