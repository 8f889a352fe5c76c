package chat

import (
	"bytes"
	"cmp"
	"math"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// message is one message of a list, with the members that benchmarks and agents add.
type message struct {
	Role         string                       `json:"role"`
	Type         string                       `json:"type"` // in its place: of LangChain's messages and OpenAI's items
	ID           transcript.Word              `json:"id"`   // tau2-bench: of the call that a tool message answers
	Name         string                       `json:"name"`
	Model        string                       `json:"model"`
	Content      jsontext.Value               `json:"content"`
	Object       transcript.Word              `json:"object"` // in its place: "response" of OpenAI's, with items
	Output       jsontext.Value               `json:"output"`
	Parts        jsontext.Value               `json:"parts"` // in its place: Google's form
	ToolCalls    []toolCall                   `json:"tool_calls"`
	FunctionCall *function                    `json:"function_call"`
	ToolCallID   string                       `json:"tool_call_id"`
	ToolCallIDs  []string                     `json:"tool_call_ids"` // SWE-agent
	Continue     transcript.Maybe[[]toolCall] `json:"toolCalls"`     // in their place
	ContinueID   transcript.Word              `json:"toolCallId"`
	ModelID      transcript.Word              `json:"model_id"`    // Grok
	WorkingDir   transcript.Word              `json:"working_dir"` // Goose, of a session
	Directory    transcript.Word              `json:"cwd"`         // Cursor, of a session
	Subtype      transcript.Word              `json:"subtype"`     // Cursor
	// Synthetic is why Grok wrote a message in the user's name.
	Synthetic transcript.Word `json:"synthetic_reason"`

	Refusal          transcript.Word `json:"refusal"`
	Audio            jsontext.Value  `json:"audio"`
	ReasoningContent string          `json:"reasoning_content"`
	// Reasoning is a text in some dialects and an object in others.
	Reasoning transcript.Word `json:"reasoning"`
	// Details are OpenRouter's form of reasoning, in which Roo Code keeps it.
	Details jsontext.Value `json:"reasoning_details"`
	// Blocks are LiteLLM's form, which SWE-agent and mini-swe-agent keep.
	Blocks jsontext.Value `json:"thinking_blocks"`
	// apart is reasoning that Continue moved out of the content.
	apart string
	// thoughts are thinking that was found in the content; seal is Google's signature of a call or a text.
	thoughts []eventlog.Thinking
	seal     string
	// partFailed says that the content is a single part, a result that is an error.
	partFailed bool

	Timestamp jsontext.Value `json:"timestamp"`
	Millis    jsontext.Value `json:"timestamp_ms"` // Cursor
	TS        jsontext.Value `json:"ts"`           // Roo Code
	Created   jsontext.Value `json:"created"`      // Goose
	UICreated jsontext.Value `json:"createdAt"`    // AI SDK
	ModelInfo transcript.Maybe[struct {
		ModelID transcript.Word `json:"modelId"`
		ID      transcript.Word `json:"id"` // in newer versions
	}] `json:"modelInfo"` // Cline
	Metrics   transcript.Maybe[*metrics] `json:"metrics"` // Cline
	Usage     *usage                     `json:"usage"`
	Requestor string                     `json:"requestor"` // tau2-bench
	Error     jsontext.Value             `json:"error"`     // tau2-bench: a boolean; Inspect: what it was
	Status    transcript.Word            `json:"status"`    // LangChain
	Extra     *extra                     `json:"extra"`     // mini-swe-agent
	Metadata  transcript.Maybe[metadata] `json:"_metadata"`

	roo
	crush
	around
	vibe
	shared
	// Goose is to whom Goose shows the message.
	Goose     transcript.Maybe[shownTo] `json:"metadata"`
	Signature transcript.Word           `json:"signature"`        // Continue, of a thinking
	Redacted  transcript.Word           `json:"redactedThinking"` // Continue
	// Of SWE-agent.
	Action  transcript.Word `json:"action"`
	Thought string          `json:"thought"`
	IsDemo  bool            `json:"is_demo"`
}

type toolCall struct {
	ID        string         `json:"id"`
	Function  *function      `json:"function"`
	Custom    *customCall    `json:"custom"`
	Name      string         `json:"name"`      // tau2-bench, LangChain
	Arguments jsontext.Value `json:"arguments"` // tau2-bench, Inspect
	Args      jsontext.Value `json:"args"`      // LangChain
	Requestor string         `json:"requestor"` // tau2-bench
}

type function struct {
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
}

// UnmarshalJSON reads a function or, as Inspect writes it, only its name.
func (f *function) UnmarshalJSON(value []byte) error {
	if name, ok := transcript.Text(value); ok {
		f.Name = name
		return nil
	}
	type members function
	return transcript.Decode(value, (*members)(f))
}

type customCall struct {
	Name  string `json:"name"`
	Input string `json:"input"`
}

type extra struct {
	ReturnCode transcript.Maybe[*int] `json:"returncode"`
	Timestamp  jsontext.Value         `json:"timestamp"`
	// Interrupt is the reason for an interruption that the agent gave to the model.
	Interrupt transcript.Word `json:"interrupt_type"`
	// Response is a text where it could not be written as an object.
	Response transcript.Maybe[struct {
		Model string `json:"model"`
		Usage *usage `json:"usage"`
	}] `json:"response"`
}

type usage struct {
	Prompt     transcript.Count `json:"prompt_tokens"`
	Completion transcript.Count `json:"completion_tokens"`
	CacheHit   transcript.Count `json:"prompt_cache_hit_tokens"`
	Details    *struct {
		Cached transcript.Count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// metrics are the usage as Cline counts it.
type metrics struct {
	Input      transcript.Count `json:"inputTokens"` // with the cached part
	Output     transcript.Count `json:"outputTokens"`
	CacheRead  transcript.Count `json:"cacheReadTokens"`
	CacheWrite transcript.Count `json:"cacheWriteTokens"`
}

// outside is what OpenAI's form has of the model's words outside of the content: of a sound without a transcript,
// the sound or its id.
func (m *message) outside() (blocks []eventlog.Block) {
	if len(m.Audio) > 0 && m.Audio[0] == '{' {
		value, _ := transcript.MemberOf(m.Audio, "transcript")
		if said, _ := transcript.Text(value); said != "" {
			blocks = append(blocks, eventlog.Text{Text: said})
		} else {
			blocks = append(blocks, ofOpenAI("audio", jsontext.Value(transcript.Compact(m.Audio))))
		}
	}
	if m.Refusal != "" {
		blocks = append(blocks, ofOpenAI("refusal", string(m.Refusal)))
	}
	return blocks
}

func ofOpenAI(kind string, value any) eventlog.Block {
	return eventlog.ProviderBlock{Provider: content.OpenAI, JSON: string(transcript.Object("type", kind, kind, value))}
}

// usageLabels are the labels of what a reply took.
func (m *message) usageLabels() map[string]string {
	if c := m.Metrics.Value; c != nil && m.usage() == nil {
		return transcript.Usage{Prompt: c.Input, CacheRead: c.CacheRead, CacheWrite: c.CacheWrite, Output: c.Output}.Labels()
	}
	return m.usage().labels()
}

func (m *message) usage() *usage {
	if m.Usage == nil && m.Extra != nil {
		return m.Extra.Response.Value.Usage
	}
	return m.Usage
}

func (m *message) model() string {
	if m.Model == "" && m.Extra != nil && m.Extra.Response.Value.Model != "" {
		return m.Extra.Response.Value.Model
	}
	return cmp.Or(m.Model, string(m.ModelInfo.Value.ModelID), string(m.ModelInfo.Value.ID), string(m.ModelID))
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

// call returns the call, and whether its arguments are JSON.
func (c *toolCall) call() (eventlog.ToolCall, bool) {
	name, arguments := c.Name, either(c.Arguments, c.Args)
	switch {
	case c.Function != nil:
		name, arguments = c.Function.Name, either(arguments, c.Function.Arguments)
	case c.Custom != nil:
		return eventlog.ToolCall{CallID: c.ID, Name: c.Custom.Name, Arguments: transcript.Wrap("input", c.Custom.Input)}, true
	}
	text, ok := transcript.RawArguments(arguments)
	return eventlog.ToolCall{CallID: c.ID, Name: name, Arguments: text}, ok
}

func (m *message) failed() bool {
	return m.partFailed || m.Status == "error" || bytes.Equal(m.Error, []byte("true")) || len(m.Error) > 0 && m.Error[0] == '{' || m.Extra != nil && m.Extra.ReturnCode.Value != nil && *m.Extra.ReturnCode.Value != 0
}

// wrong is Inspect's description of what went wrong with a call.
func (m *message) wrong() string {
	var said struct {
		Message string `json:"message"`
	}
	if len(m.Error) == 0 || m.Error[0] != '{' || transcript.Decode(m.Error, &said) != nil {
		return ""
	}
	return said.Message
}

func (m *message) time() time.Time {
	t := parseTime(m.Timestamp)
	if t.IsZero() {
		t = parseTime(m.TS)
	}
	if t.IsZero() {
		t = parseTime(m.Created)
	}
	if t.IsZero() {
		t = parseTime(m.CreatedAt)
	}
	if t.IsZero() {
		t = parseTime(m.UICreated)
	}
	if t.IsZero() && m.Extra != nil {
		t = parseTime(m.Extra.Timestamp)
	}
	if t.IsZero() {
		t = parseTime(m.Metadata.Value.Timestamp)
	}
	return t
}

// parseTime reads a time as text, in which a missing zone means UTC, or as seconds or milliseconds of the
// epoch; for anything else it returns the zero time.
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
