package claude

import (
	"fmt"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// sidechains keeps the conversations of subagents apart. A record names its
// subagent, or else belongs where its parent does.
type sidechains struct {
	out     *transcript.Builder
	byKey   map[string]*transcript.SessionBuilder
	parents map[string]string // uuid of a sidechain's record: key of its session
	calls   map[string]string // prompt of a call that starts a subagent: its call id
}

func (c *sidechains) init(out *transcript.Builder) {
	*c = sidechains{
		out: out, byKey: map[string]*transcript.SessionBuilder{},
		parents: map[string]string{}, calls: map[string]string{},
	}
}

func (c *sidechains) session(rec *record) *transcript.SessionBuilder {
	key := rec.AgentID
	if key == "" {
		key = c.parents[rec.ParentUUID]
	}
	if key == "" {
		key = "root " + rec.UUID
	}
	if rec.UUID != "" {
		c.parents[rec.UUID] = key
	}
	s := c.byKey[key]
	if s == nil {
		s = c.out.Session(fmt.Sprintf("sidechain-%d", len(c.byKey)+1))
		s.Label(transcript.LabelHarness, "claude-code")
		s.Label(transcript.LabelSessionID, rec.SessionID)
		s.Label(transcript.LabelVersion, rec.Version)
		c.byKey[key] = s
	}
	return s
}

// note learns which call began which sidechain: from the call's prompt, which is
// the sidechain's first message, and from the result, which names the subagent.
func (c *sidechains) note(rec *record, main bool, blocks []eventlog.Block) {
	for _, b := range blocks {
		switch b := b.(type) {
		case eventlog.ToolCall:
			if main && (b.Name == "Task" || b.Name == "Agent") {
				var input struct {
					Prompt string `json:"prompt"`
				}
				if transcript.Decode([]byte(b.Arguments), &input) == nil && input.Prompt != "" {
					c.calls[input.Prompt] = b.CallID
				}
			}
		case eventlog.Text:
			if call, ok := c.calls[b.Text]; !main && ok {
				c.link(rec, call)
			}
		case eventlog.ToolResult:
			if main {
				c.noteResult(rec, b.CallID)
			}
		}
	}
}

func (c *sidechains) noteResult(rec *record, call string) {
	var result struct {
		AgentID string `json:"agentId"`
	}
	if len(c.byKey) == 0 || len(rec.ToolUseResult) == 0 || rec.ToolUseResult[0] != '{' {
		return
	}
	if transcript.Decode(rec.ToolUseResult, &result) == nil && result.AgentID != "" {
		if s := c.byKey[result.AgentID]; s != nil {
			s.SetParentCall(call)
		}
	}
}

func (c *sidechains) link(rec *record, call string) {
	if s := c.session(rec); s.ParentCall() == "" {
		s.SetParentCall(call)
	}
}

// subagent reads a progress record that carries a message of a subagent, and
// reports whether it did.
func (r *reader) subagent(rec *record, entry transcript.Entry) bool {
	var data agentProgress
	if transcript.Decode(rec.Data, &data) != nil || data.Type != "agent_progress" || data.Message == nil {
		return false
	}
	inner := data.Message
	if inner.Message == nil || (inner.Type != "user" && inner.Type != "assistant") {
		return false
	}
	carried := record{
		Type: inner.Type, UUID: inner.UUID, SessionID: rec.SessionID, Version: rec.Version,
		AgentID: data.AgentID, IsSidechain: true, Message: inner.Message,
	}
	if carried.AgentID == "" {
		carried.AgentID = rec.ParentToolUseID
	}
	if carried.AgentID == "" {
		return false
	}
	if inner.UUID != "" {
		entry.ID = inner.UUID
	}
	if t := transcript.ParseTime(inner.Timestamp); !t.IsZero() {
		entry.Time = t
	}
	session := r.session(&carried)
	if session.ParentCall() == "" {
		session.SetParentCall(rec.ParentToolUseID)
	}
	r.conversation(&carried, entry)
	return true
}
