package cursor

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// agent is the session of an agent's transcript. It has no ids and no times.
type agent struct {
	session *transcript.SessionBuilder
	count   int
}

// line reads a line of an agent's transcript.
func (t *table) line(raw jsontext.Value, line int) {
	var l struct {
		Role    string `json:"role"`
		Type    string `json:"type"`
		Message struct {
			Content jsontext.Value `json:"content"`
		} `json:"message"`
	}
	if err := transcript.Decode(raw, &l); err != nil {
		t.out.Warn(line, "unexpected shape, not read: %v", err)
		return
	}
	if l.Role == "" {
		t.out.Skip("line " + l.Type)
		return
	}
	if t.agent == nil {
		t.agent = &agent{session: t.out.Session("")}
		t.agent.session.Label(transcript.LabelHarness, "cursor-agent")
	}
	t.agent.count++
	entry := transcript.Entry{Line: line, ID: "line-" + transcript.Count(line).String(), Native: bytes.Clone(raw)}
	blocks, err := content.AnthropicBlocks(l.Message.Content)
	if err != nil {
		t.agent.session.Unreadable(entry, err)
		return
	}
	switch l.Role {
	case "user":
		if injected(blocks) {
			entry.Labels = map[string]string{transcript.LabelInjected: "true"}
		}
		entry.Body = &eventlog.Message{Role: eventlog.RoleUser, Blocks: queries(blocks)}
	case "assistant":
		entry.Body = &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: blocks}
	default:
		t.agent.session.Keep(entry, "role-"+l.Role)
		return
	}
	t.agent.session.Append(entry)
}

// tags are the elements that Cursor writes in the user's name; the user's own words are in
// another.
var tags = transcript.Tags(
	"user_info", "git_status", "rules", "agent_skills", "project_layout", "additional_data", "system_reminder",
	"system_notification", "attached_files", "open_and_recently_viewed_files", "environment_details",
)

// injected reports whether Cursor wrote all of a message of the user's.
func injected(blocks []eventlog.Block) bool {
	for _, b := range blocks {
		if t, ok := b.(eventlog.Text); !ok || !transcript.Inserted(t.Text, tags) {
			return false
		}
	}
	return len(blocks) > 0
}

// queries takes the user's words out of the mark around them.
func queries(blocks []eventlog.Block) []eventlog.Block {
	for i, b := range blocks {
		text, ok := b.(eventlog.Text)
		if !ok {
			continue
		}
		inner, begins := strings.CutPrefix(strings.TrimSpace(text.Text), "<user_query>")
		inner, ends := strings.CutSuffix(inner, "</user_query>")
		if begins && ends {
			blocks[i] = eventlog.Text{Text: strings.Trim(inner, "\n")}
		}
	}
	return blocks
}
