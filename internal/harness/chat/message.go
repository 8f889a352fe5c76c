package chat

import (
	"bytes"
	"math"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

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

	Timestamp jsontext.Value `json:"timestamp"`
	Usage     *usage         `json:"usage"`
	Requestor string         `json:"requestor"` // tau2-bench
	Error     jsontext.Value `json:"error"`     // tau2-bench: a boolean
	Extra     *extra         `json:"extra"`     // mini-swe-agent

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
	return bytes.Equal(m.Error, []byte("true")) || (m.Extra != nil && m.Extra.ReturnCode != nil && *m.Extra.ReturnCode != 0)
}

func (m *message) time() time.Time {
	if t := parseTime(m.Timestamp); !t.IsZero() || m.Extra == nil {
		return t
	}
	return parseTime(m.Extra.Timestamp)
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
