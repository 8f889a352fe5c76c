package chat

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// The dialects that need a rule of their own.
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
	model   string // of the messages that do not name theirs
	count   int
	// pending is set while an action that is no call in the file waits for its observation,
	// and refused while a text of mini-swe-agent's model that holds none waits for a word.
	pending, refused bool
	// asked are the calls of the message before, which Cline answers in texts.
	asked []eventlog.ToolCall
	sides map[string]*conversation // those of subagents, by their ids
}

func (c *conversation) add(raw jsontext.Value, line int) {
	c.count++
	entry := transcript.Entry{Line: line, ID: "msg-" + strconv.Itoa(c.count), Native: raw}
	var m message
	if err := transcript.Decode(raw, &m); err != nil {
		c.session.Unreadable(entry, err)
		return
	}
	entry.Time = m.time()
	side, err := c.subagent(entry, &m)
	if !side {
		err = c.message(entry, &m)
	}
	if err != nil {
		c.session.Unreadable(entry, err)
	}
}

func (c *conversation) message(entry transcript.Entry, m *message) (err error) {
	m.unwrap()
	switch m.Role {
	case "system", "developer":
		err = c.plain(entry, m, eventlog.RoleSystem)
	case "user":
		err = c.user(entry, m)
	case "assistant", "model":
		err = c.assistant(entry, m)
	case "tool", "function":
		err = c.tool(entry, m)
	case "exit": // mini-swe-agent: how the run ended
		c.session.Custom(entry, "exit")
	default:
		c.out.Warn(entry.Line, "message of the unknown role %q; kept as a custom event", m.Role)
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
	c.asked = nil
	if len(results) > 0 {
		reply := entry
		reply.Body = &eventlog.Message{Role: eventlog.RoleTool, Blocks: results}
		c.session.Append(reply)
		if len(rest) == 0 {
			return nil
		}
		entry.ID += "/text"
		blocks = rest
		if surroundings(rest) {
			entry.Label(transcript.LabelInjected, "true")
		}
	}
	if m.IsDemo || m.byAgent() || c.refused && role == eventlog.RoleUser && !m.byUser() {
		entry.Labels = map[string]string{transcript.LabelInjected: "true"}
	}
	entry.Body = &eventlog.Message{Role: role, Blocks: blocks}
	c.session.Append(entry)
	return nil
}

// byAgent reports whether the agent wrote to the model in the user's name, which
// mini-swe-agent does where it cannot run what the model asked for.
func (m *message) byAgent() bool {
	if m.Extra == nil {
		return false
	}
	return m.Extra.Interrupt != "" && !m.byUser()
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
		// The simulated user of tau2-bench has tools of its own, which the agent does
		// not see.
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
	if thought := cmp.Or(m.ReasoningContent, string(m.Reasoning)); thought != "" {
		m.thoughts = []string{thought}
	}
	for i, thought := range m.thoughts {
		blocks = slices.Insert(blocks, i, eventlog.Block(eventlog.Thinking{Text: thought}))
	}
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
	switch {
	case len(calls) > 0:
	case c.dialect == sweAgent && strings.TrimSpace(m.Action) != "":
		blocks = action(m, blocks)
		c.pending = true
	case c.dialect == miniSWEAgent:
		blocks, c.pending = fencedCall(blocks)
		c.refused = !c.pending
	}
	entry.Labels = m.usage().labels()
	if m.IsDemo {
		entry.Labels = map[string]string{transcript.LabelInjected: "true"}
	}
	c.asked = callsOf(blocks)
	entry.Body = &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: blocks, Model: cmp.Or(m.model(), c.model)}
	c.session.Append(entry)
	return nil
}

// action makes a call of what SWE-agent's older style writes at the end of the
// text: the thought stays text, and the next user message is the call's result.
func action(m *message, blocks []eventlog.Block) []eventlog.Block {
	call := eventlog.ToolCall{Name: "command", Arguments: transcript.Wrap("command", m.Action)}
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
	inner, err := content.ResultContent(outputs(m.Content))
	if err != nil {
		return err
	}
	result := eventlog.ToolResult{CallID: m.ToolCallID, ToolName: m.Name, Content: inner, IsError: m.failed()}
	if result.CallID == "" && c.dialect == tau2Bench {
		result.CallID = m.ID
	}
	if c.dialect == tauBench || c.dialect == tau2Bench {
		if t, ok := first(inner); ok && strings.HasPrefix(t, "Error") {
			result.IsError = true
		}
	}
	if c.dialect == miniSWEAgent && failedText(inner) {
		result.IsError = true
	}
	blocks := []eventlog.Block{result}
	if len(m.ToolCallIDs) > 0 && result.CallID == "" {
		// One observation may answer several calls: the first of them holds it.
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

func first(blocks []eventlog.Block) (string, bool) {
	if len(blocks) == 0 {
		return "", false
	}
	t, ok := blocks[0].(eventlog.Text)
	return t.Text, ok
}

// message is one message of a list, with the members that the benchmarks and
// agents add to it.
type message struct {
	Role         string         `json:"role"`
	ID           string         `json:"id"` // tau2-bench: of the call that a tool message answers
	Name         string         `json:"name"`
	Model        string         `json:"model"`
	Content      jsontext.Value `json:"content"`
	ToolCalls    []toolCall     `json:"tool_calls"`
	FunctionCall *function      `json:"function_call"`
	ToolCallID   string         `json:"tool_call_id"`
	ToolCallIDs  []string       `json:"tool_call_ids"` // SWE-agent

	ReasoningContent string `json:"reasoning_content"`
	// Reasoning is a text in some dialects and an object in others.
	Reasoning transcript.Word `json:"reasoning"`
	// thoughts are what the content has instead.
	thoughts []string
	// partFailed says that a content that is one part is a result that failed.
	partFailed bool

	Timestamp jsontext.Value             `json:"timestamp"`
	Usage     *usage                     `json:"usage"`
	Requestor string                     `json:"requestor"` // tau2-bench
	Error     jsontext.Value             `json:"error"`     // tau2-bench: a boolean
	Extra     *extra                     `json:"extra"`     // mini-swe-agent
	Metadata  transcript.Maybe[metadata] `json:"_metadata"`

	// Of SWE-agent.
	Action  string `json:"action"`
	Thought string `json:"thought"`
	IsDemo  bool   `json:"is_demo"`
}

type toolCall struct {
	ID        string         `json:"id"`
	Function  *function      `json:"function"`
	Custom    *customCall    `json:"custom"`
	Name      string         `json:"name"`      // tau2-bench
	Arguments jsontext.Value `json:"arguments"` // tau2-bench
	Requestor string         `json:"requestor"` // tau2-bench
}

type function struct {
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
}

type customCall struct {
	Name  string `json:"name"`
	Input string `json:"input"`
}

type extra struct {
	ReturnCode *int           `json:"returncode"`
	Timestamp  jsontext.Value `json:"timestamp"`
	// Interrupt is the reason that the agent gave the model for an interruption.
	Interrupt transcript.Word `json:"interrupt_type"`
	Response  *struct {
		Model string `json:"model"`
		Usage *usage `json:"usage"`
	} `json:"response"`
}

type usage struct {
	Prompt     transcript.Count `json:"prompt_tokens"`
	Completion transcript.Count `json:"completion_tokens"`
	CacheHit   transcript.Count `json:"prompt_cache_hit_tokens"`
	Details    *struct {
		Cached transcript.Count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (m *message) usage() *usage {
	if m.Usage == nil && m.Extra != nil && m.Extra.Response != nil {
		return m.Extra.Response.Usage
	}
	return m.Usage
}

func (m *message) model() string {
	if m.Model == "" && m.Extra != nil && m.Extra.Response != nil {
		return m.Extra.Response.Model
	}
	return m.Model
}

func (u *usage) labels() map[string]string {
	if u == nil {
		return nil
	}
	cached := u.CacheHit
	if cached == 0 && u.Details != nil {
		cached = u.Details.Cached
	}
	return transcript.Usage{Prompt: u.Prompt, CacheRead: cached, Output: u.Completion}.Labels()
}

// call gives the call and whether its arguments were JSON.
func (c *toolCall) call() (eventlog.ToolCall, bool) {
	name, arguments := c.Name, c.Arguments
	switch {
	case c.Function != nil:
		name, arguments = c.Function.Name, c.Function.Arguments
	case c.Custom != nil:
		return eventlog.ToolCall{CallID: c.ID, Name: c.Custom.Name, Arguments: transcript.Wrap("input", c.Custom.Input)}, true
	}
	text, ok := transcript.RawArguments(arguments)
	return eventlog.ToolCall{CallID: c.ID, Name: name, Arguments: text}, ok
}

func (m *message) failed() bool {
	return m.partFailed || bytes.Equal(m.Error, []byte("true")) || (m.Extra != nil && m.Extra.ReturnCode != nil && *m.Extra.ReturnCode != 0)
}

func (m *message) time() time.Time {
	t := parseTime(m.Timestamp)
	if t.IsZero() && m.Extra != nil {
		t = parseTime(m.Extra.Timestamp)
	}
	if t.IsZero() {
		t = parseTime(m.Metadata.Value.Timestamp)
	}
	return t
}

// parseTime reads a time as text, with or without a zone (then it is UTC), or as
// seconds or milliseconds of the epoch; the zero time if it is none of these.
func parseTime(raw jsontext.Value) time.Time {
	if text, ok := transcript.Text(raw); ok {
		return transcript.ParseTime(text)
	}
	var seconds float64
	if transcript.Decode(raw, &seconds) != nil || seconds <= 0 || seconds > 1e14 {
		return time.Time{}
	}
	if seconds > 1e11 {
		seconds /= 1000
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(math.Round(part*1e6))*1000).UTC()
}
