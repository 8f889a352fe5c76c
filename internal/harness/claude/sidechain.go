package claude

import (
	"cmp"
	"fmt"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// isSubagent reports whether a session is a subagent's.
func isSubagent(s transcript.Session) bool {
	return own(s) && s.Labels[labelSidechain] == "true"
}

// prompt returns the prompt of the subagent that a call begins; "" if it begins none.
func prompt(c eventlog.ToolCall) string {
	if c.Name != "Task" && c.Name != "Agent" {
		return ""
	}
	var input struct {
		Prompt string `json:"prompt"`
	}
	if transcript.Decode([]byte(c.Arguments), &input) != nil {
		return ""
	}
	return input.Prompt
}

// sidechains separates the conversations of subagents. A record belongs to the subagent that it names, or
// else to that of its parent.
type sidechains struct {
	out     *transcript.Builder
	byKey   map[string]*transcript.SessionBuilder
	all     []*transcript.SessionBuilder
	parents map[string]string // uuid of a sidechain's record: key of its session
	calls   map[string]string // prompt of a call that starts a subagent: its call id
}

func (c *sidechains) init(out *transcript.Builder) {
	*c = sidechains{
		out: out, byKey: map[string]*transcript.SessionBuilder{},
		parents: map[string]string{}, calls: map[string]string{},
	}
}

// key identifies the session of a record; "" is the main one.
func (c *sidechains) key(rec *record) string {
	if !rec.IsSidechain {
		return ""
	}
	key := cmp.Or(rec.AgentID, c.parents[rec.ParentUUID], "root "+rec.UUID)
	if rec.UUID != "" {
		c.parents[rec.UUID] = key
	}
	return key
}

func (c *sidechains) session(rec *record) *transcript.SessionBuilder {
	key := c.key(rec)
	s := c.byKey[key]
	if s == nil {
		s = c.out.Session(fmt.Sprintf("sidechain-%d", len(c.byKey)+1))
		s.Label(transcript.LabelHarness, format)
		s.Label(labelSidechain, "true")
		s.Label(labelAgent, rec.AgentID)
		s.SetParentCall(string(rec.Caller))
		c.byKey[key] = s
		c.all = append(c.all, s)
	}
	return s
}

// note finds the call that began a sidechain: by the call's prompt, which is the sidechain's first message,
// or by the call's result, which names the subagent.
func (c *sidechains) note(rec *record, main bool, blocks []eventlog.Block) {
	for _, b := range blocks {
		switch b := b.(type) {
		case eventlog.ToolCall:
			if main {
				if text := prompt(b); text != "" {
					c.calls[text] = b.CallID
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
	if transcript.Decode(rec.Data, &data) != nil || data.Type != "agent_progress" || len(data.Message) == 0 {
		return false
	}
	var carried record
	if transcript.Decode(data.Message, &carried) != nil || carried.Message == nil || (carried.Type != "user" && carried.Type != "assistant") {
		return false
	}
	carried.IsSidechain, carried.IsCompactSummary, carried.AgentID = true, false, data.AgentID
	carried.SessionID, carried.Version = rec.SessionID, rec.Version
	carried.CWD, carried.GitBranch, carried.UserType = rec.CWD, rec.GitBranch, rec.UserType
	if carried.AgentID = cmp.Or(carried.AgentID, rec.ParentToolUseID); carried.AgentID == "" {
		return false
	}
	if carried.UUID != "" {
		entry.ID = carried.UUID
	}
	if t := transcript.ParseTime(carried.Timestamp); !t.IsZero() {
		entry.Time = t
	}
	session := r.session(&carried)
	if session.Len() == 0 {
		session.Label(labelProgress, "true")
	}
	if session.ParentCall() == "" {
		session.SetParentCall(rec.ParentToolUseID)
	}
	entry.Native = data.Message
	if session.Labels()[labelProgress] == "" {
		// The session began with records of its own: this one is read, and later written, as one too.
		entry.Native = asRecord(data.Message, carried.AgentID)
		if r.tooEarly(&carried, entry) {
			return true
		}
		r.releaseBefore(&carried)
		defer r.releaseAfter(&carried)
	}
	r.conversation(&carried, entry)
	return true
}

// asRecord turns a message in a progress record into a record of its own.
func asRecord(message []byte, agent string) []byte {
	rest := transcript.Rewrite(message, func(name string, value []byte) []byte {
		if name == "isSidechain" || name == "agentId" {
			return nil
		}
		return value
	})
	v := transcript.Object("isSidechain", true, "agentId", agent)
	if len(rest) > len("{}") {
		v = append(append(v[:len(v)-1], ','), rest[1:]...)
	}
	return v
}
