package harness_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
)

// explain corrects the counts of a session where the index counts in another way, each with its reason. After
// these corrections the counts must be equal.
func explain(x corpusEntry, c counts, tr harness.Transcript) counts {
	s := tr.Sessions[0]
	switch x.Format {
	case "claude-code":
		// The index counts the text that replaced the conversation as a user's message.
		c.User += c.Compactions
		// It does not count what came from the queue while the model worked.
		c.User -= labelled(s, "claude.queued")
		// A result without its call is kept, but is no result.
		orphans := customsOf(s, "orphan-result")
		c.Results += len(orphans)
		for _, o := range orphans {
			if strings.Contains(o, `"is_error":true`) {
				c.Errors++
			}
		}
	case "codex-rollout":
		c.explainCodex(s)
	case "copilot-cli":
		// A reply that says nothing is not a message.
		c.Assistant += customs(s, "empty-reply")
	case "opencode":
		c.explainOpenCode(x, s)
	case "pi":
		// A turn that was cut off before it said anything is not a message, and a
		// command of the user is.
		c.Assistant += customs(s, "aborted-reply") + customs(s, "error-reply")
		for _, e := range s.Events {
			if m, ok := e.Body.(*eventlog.Message); ok && m.Role == eventlog.RoleUser {
				if t, ok := m.Blocks[0].(eventlog.Text); ok && strings.HasPrefix(t.Text, "Ran `") {
					c.User--
				}
			}
		}
	case "swe-agent":
		// The older style: the index counts the observations in the history, all but the last,
		// as users' messages and as results.
		if called(s, "command") {
			c.User += c.Results - 1
		}
	case "aider-md":
		// The index counts commands as the user's messages, replies by what aider counted, so
		// not those that were interrupted, and no usage.
		c.User, c.Prompt = c.User+customs(s, "command"), 0
		for i, e := range s.Events {
			m, ok := e.Body.(*eventlog.Message)
			if ok && m.Role == eventlog.RoleAssistant && s.Events[i+1].Labels["usage.prompt_tokens"] == "" {
				c.Assistant--
			}
		}
	case "tau2-bench":
		c.explainTau2(s)
	case "openhands":
		// The index does not take an edit that reports ERROR for one; and it counts no
		// usage.
		c.Errors--
		c.User -= labelled(s, "harness.injected")
		c.Prompt, c.Cached = 0, 0
	case "gemini-cli", "mini-swe-agent", "tau-bench":
	}
	return c
}

// called reports whether a tool was called.
func called(s harness.Session, tool string) bool {
	for _, e := range s.Events {
		m, ok := e.Body.(*eventlog.Message)
		if ok && slices.ContainsFunc(m.Blocks, func(b eventlog.Block) bool { c, ok := b.(eventlog.ToolCall); return ok && c.Name == tool }) {
			return true
		}
	}
	return false
}

// labelled counts the events that have a label.
func labelled(s harness.Session, label string) int {
	n := 0
	for _, e := range s.Events {
		if e.Labels[label] != "" {
			n++
		}
	}
	return n
}

func (c *counts) explainCodex(s harness.Session) {
	c.Assistant = 0
	for _, e := range s.Events {
		m, ok := e.Body.(*eventlog.Message)
		if !ok || m.Role != eventlog.RoleAssistant {
			continue
		}
		switch m.Blocks[len(m.Blocks)-1].(type) { // before it may be its phase
		case eventlog.Text: // every item is an event; only these are messages
			c.Assistant++
		case eventlog.ProviderBlock: // the provider's own search
			c.Calls++
		}
	}
	c.Thinking += customs(s, "empty-reasoning")
}

func (c *counts) explainOpenCode(x corpusEntry, s harness.Session) {
	for _, e := range s.Events {
		if m, ok := e.Body.(*eventlog.Message); ok && m.Role == eventlog.RoleAssistant && strings.Contains(e.ID, "/step-") {
			c.Assistant-- // further requests of one message
		}
	}
	// The two messages of a compaction are one event, the thinking for the summary is
	// not kept, a message that only starts a subtask is no message, and a reply that
	// failed is none either.
	c.User += c.Compactions + customs(s, "part-subtask")
	c.Assistant += c.Compactions + customs(s, "failed-reply")
	if x.Compactions > 0 {
		c.Thinking += c.Compactions
	}
}

// explainTau2 counts the simulated user's own tools, which the agent does not see.
func (c *counts) explainTau2(s harness.Session) {
	for _, raw := range customsOf(s, "user-tools") {
		var m toolMessage
		if json.Unmarshal([]byte(raw), &m) != nil {
			continue
		}
		if m.Role == "tool" {
			c.Results++
			continue
		}
		c.Calls += len(m.ToolCalls)
		if m.Content == nil || *m.Content == "" {
			c.User++
		}
	}
}

// checkExplained: each explanation is needed for some session, so that none hides a reader's mistake after
// the difference is gone.
func checkExplained(t *testing.T, differs map[string]bool) {
	t.Helper()
	for _, format := range []string{"claude-code", "codex-rollout", "copilot-cli", "opencode", "pi", "swe-agent", "tau2-bench", "openhands"} {
		if !differs[format] {
			t.Errorf("the explanation for %s is not needed", format)
		}
	}
}
