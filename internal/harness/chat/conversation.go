package chat

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/converted"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// The dialects that need special rules.
const (
	tauBench     = "tau-bench"
	tau2Bench    = "tau2-bench"
	miniSWEAgent = "mini-swe-agent"
	sweAgent     = "swe-agent"
)

// conversation appends the messages of one list to a session.
type conversation struct {
	out     *transcript.Builder
	session *transcript.SessionBuilder
	suffix  string // of the session
	dialect string
	model   string // for messages that name none
	count   int
	// pending is set while an action that is no call in the file waits for its observation. refused is set
	// after a text of mini-swe-agent's model without a command, until the next message answers it.
	pending, refused bool
	// asked are the calls of the message before; Cline writes their results as texts. written is its text, which may
	// have the calls instead.
	asked   []eventlog.ToolCall
	written string
	open    open
	// staying are the ids of messages that no summary of Roo Code replaced.
	staying []string
	// reply is the id of the first in a sequence of OpenAI's items that the model wrote; empty if the last
	// message was none.
	reply string
	sides map[string]*conversation // the conversations of subagents, by their ids
	known known
	kimi  bool            // Kimi CLI wrote the file
	given map[string]bool // the calls whose results Continue wrote beside them
	hid   bool            // Goose hid a reply from the model
	// instructions are the newest system prompt of Pydantic AI.
	instructions string
	// thought is what Cursor or Codex printed, or ChatGPT kept, of the model's thinking since the last reply.
	thought strings.Builder
	called  string // the call of ChatGPT's model that the next message answers
}

// add appends an element of the list.
func (c *conversation) add(raw jsontext.Value, line int) {
	c.count++
	for i, one := range c.unfold(raw) {
		entry := transcript.Entry{Line: line, ID: "msg-" + strconv.Itoa(c.count), Native: raw}
		if i > 0 {
			entry.ID += "/" + strconv.Itoa(i+1)
		}
		c.one(entry, one)
	}
}

// one appends a message.
func (c *conversation) one(entry transcript.Entry, raw jsontext.Value) {
	var m message
	if err := transcript.Decode(raw, &m); err != nil {
		c.session.Unreadable(entry, err)
		return
	}
	m.ofShared()
	m.ofLangChain(raw)
	m.unwrapped(raw)
	m.translate()
	m.ofCrush()
	entry.Time = m.time()
	c.hid = c.hid || m.Role == "assistant" && m.hidden() && !m.aside()
	from := c.session.Len()
	side, err := c.subagent(entry, &m)
	switch {
	case side:
	case m.begins():
		c.session.Label(transcript.LabelSessionID, string(cmp.Or(m.ID, m.SessionID)))
		c.session.Label(transcript.LabelWorkingDirectory, string(m.Directory))
		c.model = cmp.Or(c.model, m.Model)
		c.session.Keep(entry, "session")
	case m.ends():
		c.session.Keep(entry, "end")
	case m.aside():
		c.session.Keep(entry, "aside")
	case m.IsSummary || c.sumsGoose(&m):
		err = c.summary(entry, &m)
	default:
		c.attached(entry, &m)
		if !m.isSummary() {
			err = c.message(entry, &m)
		}
		c.answers(entry, &m)
		c.sums(entry, &m)
		c.stays(&m, from)
	}
	if err != nil {
		c.session.Unreadable(entry, err)
	}
}

func (c *conversation) message(entry transcript.Entry, m *message) (err error) {
	switch {
	case m.inGoogle():
		return c.google(entry, m)
	case m.isItem():
		return c.item(entry, m)
	case m.Object == "response" && len(m.Output) > 0:
		return c.response(entry, m)
	}
	reply := c.reply
	c.reply = ""
	m.unwrap()
	c.kimi = c.kimi || strings.HasPrefix(m.Role, "_")
	switch m.Role {
	case "system", "developer", "_system_prompt":
		err = c.plain(entry, m, eventlog.RoleSystem)
	case "user":
		err = c.user(entry, m)
	case "assistant", "model":
		if reply == "" {
			m.ReasoningContent = cmp.Or(m.ReasoningContent, m.apart)
		}
		if c.reply = reply; reply == "" && m.ofReply() {
			c.reply = entry.ID
		}
		if err = c.assistant(entry, m); !m.ofReply() {
			c.reply = ""
		}
	case "tool", "function":
		if c.given[m.ToolCallID] {
			c.session.Keep(entry, "repeated")
			break
		}
		err = c.tool(entry, m)
	case "thinking":
		err = c.thinks(entry, m, reply)
	case "_checkpoint", "_usage": // Kimi CLI, of its own
		c.session.Keep(entry, "bookkeeping")
	case "exit": // mini-swe-agent: how the run ended
		c.session.Custom(entry, "exit")
	default:
		c.out.Warn(entry.Line, "message of the unknown role %q; kept as a custom event", cmp.Or(m.Role, m.Type))
		c.session.Custom(entry, "unknown-role")
	}
	return err
}

func (c *conversation) plain(entry transcript.Entry, m *message, role eventlog.Role) error {
	blocks, err := content.ChatBlocks(m.Content)
	if err != nil {
		return err
	}
	if role == eventlog.RoleUser && len(blocks) > 0 && resultsAlone(blocks) {
		role = eventlog.RoleTool
	}
	var results, rest []eventlog.Block
	if role == eventlog.RoleUser {
		results, rest = answered(c.asked, blocks)
	}
	answers := eventlog.RoleTool
	if role == eventlog.RoleUser && len(c.asked) == 0 {
		answers = role
		results, rest = reported(c.written, blocks)
	}
	if role == eventlog.RoleUser && ranFenced(c.written, blocks) {
		entry.Label(transcript.LabelInjected, "true")
	}
	c.asked, c.written = nil, ""
	if len(results) > 0 {
		reply := entry
		if reply.Body = (&eventlog.Message{Role: answers, Blocks: results}); answers == eventlog.RoleUser {
			reply.Label(transcript.LabelInjected, "true")
		}
		c.session.Append(reply)
		if len(rest) == 0 {
			return nil
		}
		entry.ID += "/text"
		blocks = rest
	}
	if role == eventlog.RoleUser && surroundings(blocks) && (len(results) > 0 || withoutTool(blocks)) {
		entry.Label(transcript.LabelInjected, "true")
	} else if role == eventlog.RoleUser {
		entry.Beside(blocks, func(i int) bool { return ofEditor(blocks[i]) })
	}
	if role == eventlog.RoleUser && c.kimi {
		injectedByKimi(&entry, blocks)
	}
	if role == eventlog.RoleUser {
		converted.Injected(&entry, blocks)
	}
	if m.ofGoose() {
		entry.Label(transcript.LabelInjected, "true")
	}
	if m.Injected.Value {
		injectedByVibe(&entry, blocks)
	}
	if m.IsDemo || m.IsCut || m.Synthetic != "" || m.byAgent() || c.refused && role == eventlog.RoleUser && !m.byUser() {
		entry.Labels = map[string]string{transcript.LabelInjected: "true"}
	}
	entry.Body = &eventlog.Message{Role: role, Blocks: blocks}
	c.session.Append(entry)
	return nil
}

// byAgent reports whether the agent wrote a user message itself, as mini-swe-agent does where it cannot run
// what the model asked for, or where it reports what a command of the user's printed.
func (m *message) byAgent() bool {
	if m.Extra == nil || m.byUser() {
		return false
	}
	return m.Extra.Interrupt != "" || m.Extra.ReturnCode.Value != nil
}

// byUser reports whether the user interrupted mini-swe-agent.
func (m *message) byUser() bool { return m.Extra != nil && m.Extra.Interrupt == "UserInterruption" }

func resultsAlone(blocks []eventlog.Block) bool {
	for _, b := range blocks {
		if _, ok := b.(eventlog.ToolResult); !ok {
			return false
		}
	}
	return true
}

func (c *conversation) user(entry transcript.Entry, m *message) error {
	defer func() { c.refused = false }()
	if c.pending && !m.IsDemo && !m.byUser() {
		c.pending = false
		return c.tool(entry, m)
	}
	if len(m.ToolCalls) > 0 {
		// The simulated user of tau2-bench has tools of its own, which the agent does not see.
		c.session.Custom(entry, "user-tools")
		if m.Content == nil || string(m.Content) == "null" || string(m.Content) == `""` {
			return nil
		}
		entry.ID += "/text"
	}
	return c.plain(entry, m, eventlog.RoleUser)
}

func (c *conversation) assistant(entry transcript.Entry, m *message) error {
	c.pending = false
	m.takeCalls()
	blocks, err := content.ChatBlocks(m.Content)
	if err != nil {
		return err
	}
	var thoughts []eventlog.Block
	for _, thought := range m.thinking() {
		thoughts = append(thoughts, thought)
	}
	blocks = slices.Concat(thoughts, blocks, m.outside())
	calls := m.ToolCalls
	if m.FunctionCall != nil && m.FunctionCall.Name != "" {
		calls = append(calls, toolCall{Function: m.FunctionCall})
	}
	for i := range calls {
		call, ok := calls[i].call()
		if !ok {
			c.out.Warn(entry.Line, "arguments of call %q are not JSON; kept as they are", call.CallID)
		}
		blocks = append(blocks, call)
	}
	blocks = c.reflects(m.sealed(blocks))
	switch {
	case len(calls) > 0:
	case c.dialect == sweAgent && strings.TrimSpace(string(m.Action)) != "":
		blocks = action(m, blocks)
		c.pending = true
	case c.dialect == miniSWEAgent:
		blocks, c.pending = fencedCall(blocks)
		c.refused = !c.pending
	}
	entry.Labels = m.usageLabels()
	if m.IsDemo || m.ofGoose() {
		entry.Labels = map[string]string{transcript.LabelInjected: "true"}
	}
	c.asked, c.written = callsOf(blocks), strings.Join(transcript.Texts(blocks), "\n")
	entry.Body = &eventlog.Message{Role: eventlog.RoleAssistant, GroupID: c.reply, Blocks: blocks, Model: cmp.Or(m.model(), c.model)}
	c.session.Append(entry)
	return nil
}

// action makes a call of the command that SWE-agent's older style writes at the end of the text. The thought
// stays text, and the next user message is the call's result.
func action(m *message, blocks []eventlog.Block) []eventlog.Block {
	call := eventlog.ToolCall{Name: "command", Arguments: transcript.Wrap("command", string(m.Action))}
	if len(blocks) == 1 && m.Thought != "" {
		if t, ok := blocks[0].(eventlog.Text); ok && strings.HasPrefix(t.Text, m.Thought) {
			return []eventlog.Block{eventlog.Text{Text: m.Thought}, call}
		}
	}
	return append(blocks, call)
}

func (c *conversation) tool(entry transcript.Entry, m *message) error {
	if m.Requestor == "user" {
		c.session.Custom(entry, "user-tools")
		return nil
	}
	if all := results(m.Content); len(all) > 0 {
		entry.Body = &eventlog.Message{Role: eventlog.RoleTool, Blocks: all}
		c.session.Append(entry)
		return nil
	}
	inner, err := content.ResultContent(outputs(m.Content))
	if err != nil {
		return err
	}
	if text := m.wrong(); text != "" && len(inner) == 0 {
		inner = []eventlog.Block{eventlog.Text{Text: text}}
	}
	result := eventlog.ToolResult{CallID: m.ToolCallID, ToolName: m.Name, Content: inner, IsError: m.failed()}
	if result.CallID == "" && c.dialect == tau2Bench {
		result.CallID = string(m.ID)
	}
	if c.dialect == tauBench || c.dialect == tau2Bench {
		if t, ok := first(inner); ok && strings.HasPrefix(t, "Error") {
			result.IsError = true
		}
	}
	if text, ok := first(inner); ok && (strings.HasPrefix(text, refusedByClaude) || c.kimi && strings.HasPrefix(text, kimiError)) || c.dialect == miniSWEAgent && failedText(inner) {
		result.IsError = true
	}
	blocks := []eventlog.Block{result}
	if len(m.ToolCallIDs) > 0 && result.CallID == "" {
		// One observation may answer several calls: only the first result has its content.
		blocks = blocks[:0]
		for _, id := range m.ToolCallIDs {
			result.CallID = id
			blocks = append(blocks, result)
			result.Content = nil
		}
	}
	entry.Body = &eventlog.Message{Role: eventlog.RoleTool, Blocks: blocks}
	c.session.Append(entry)
	return nil
}

// refusedByClaude begins the results of Claude Code's calls that did nothing. Its transcripts say also elsewhere
// that they failed, which some programs omit where they convert them.
const refusedByClaude = "<tool_use_error>"

func first(blocks []eventlog.Block) (string, bool) {
	if len(blocks) == 0 {
		return "", false
	}
	t, ok := blocks[0].(eventlog.Text)
	return t.Text, ok
}
