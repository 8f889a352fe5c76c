package opencode

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// result is a tool's result and its event.
type result struct {
	block eventlog.ToolResult
	event *eventlog.Event
}

// resultsOf returns the results in events by call id.
func resultsOf(events []eventlog.Event) map[string]result {
	all := map[string]result{}
	for i := range events {
		m, ok := events[i].Body.(*eventlog.Message)
		if !ok {
			continue
		}
		for _, b := range m.Blocks {
			if r, ok := b.(eventlog.ToolResult); ok {
				all[r.CallID] = result{r, &events[i]}
			}
		}
	}
	return all
}

func providerOf(model string) string {
	switch provider.Of(model) {
	case provider.Anthropic:
		return "anthropic"
	case provider.OpenAI:
		return "openai"
	case provider.Gemini:
		return "google"
	case provider.Unknown:
	}
	return "unknown"
}

// assistant adds the steps of a reply; events of one group are one step. mode is empty except for a
// compaction's summary.
func (r *renderer) assistant(p *parts, events []eventlog.Event, results map[string]result, mode string) jsontext.Value {
	said := reply{renderer: r, parts: p, results: results, last: events[0].Time}
	for i := range events {
		if m, ok := events[i].Body.(*eventlog.Message); ok && m.Role == eventlog.RoleAssistant {
			said.add(&events[i], m)
		}
	}
	said.endStep()
	members := []any{"modelID", said.model, "tokens", tokensOf(said.labels)}
	if r.directory != "" {
		members = append(members, "path", transcript.Object("cwd", r.directory, "root", r.directory))
	}
	completed := any(nil)
	if r.complete {
		completed = millis(said.last)
		members = append(members, r.required(p.message, said.model, mode, said.finish())...)
	} else {
		agent := any(nil)
		if mode != "" {
			agent = mode
		}
		members = append(members, "mode", agent, "agent", agent)
	}
	if mode != "" {
		members = append(members, "summary", true)
	}
	return r.info(p.message, "assistant", events[0].Time, completed, members...)
}

// reply collects the steps of a reply.
type reply struct {
	renderer *renderer
	parts    *parts
	results  map[string]result
	// model is the last one that was named, or nil. last is the time of the newest result.
	model any
	last  time.Time
	// open is set while there is a step: group is the group of its events, labels have its tokens, and calls
	// is set if it calls tools.
	open   bool
	group  string
	labels map[string]string
	calls  bool
}

// add adds an assistant message to the open step if it is of the same group, and otherwise to a new one.
func (y *reply) add(e *eventlog.Event, m *eventlog.Message) {
	if !y.open || m.GroupID == "" || m.GroupID != y.group {
		y.endStep()
		y.parts.add("step-start")
		y.open, y.group, y.labels, y.calls = true, m.GroupID, nil, false
	}
	if e.Labels[transcript.LabelPromptTokens] != "" {
		y.labels = e.Labels
	}
	if m.Model != "" {
		y.renderer.model, y.model = m.Model, m.Model
	}
	for _, b := range m.Blocks {
		call, ok := b.(eventlog.ToolCall)
		if !ok {
			y.renderer.said(y.parts, b, e, m.Model)
			continue
		}
		y.calls = true
		y.renderer.tool(y.parts, call, e, y.results)
		if done, ok := y.results[call.CallID]; ok && done.event.Time.After(y.last) {
			y.last = done.event.Time
		}
	}
}

// endStep ends the open step, if there is one.
func (y *reply) endStep() {
	if y.open && (y.renderer.complete || y.labels[transcript.LabelPromptTokens] != "") {
		y.parts.add("step-finish", "reason", y.finish(), "cost", 0, "tokens", tokensOf(y.labels))
	}
}

// finish returns the reason with which the step ended.
func (y *reply) finish() string {
	if y.calls {
		return "tool-calls"
	}
	return "stop"
}

// required returns the members that the harness requires of a reply, without the model if the info has it
// already.
func (r *renderer) required(message string, model any, mode, finish string) []any {
	parent := cmp.Or(r.parent, message) // a reply must name one, even if no user message is before it
	mode = cmp.Or(mode, "build")
	named := any(r.model)
	if model != nil {
		named = nil
	}
	return []any{
		"parentID", parent, "modelID", named, "providerID", providerOf(r.model), "mode", mode, "agent", mode, "cost", 0, "finish", finish,
	}
}

func (r *renderer) said(p *parts, block eventlog.Block, e *eventlog.Event, model string) {
	switch b := block.(type) {
	case eventlog.Text:
		p.add("text", "text", b.Text)
	case eventlog.Thinking:
		var seal, when any
		if b.Sealed() {
			seal = sealOf(b, model)
		}
		if r.complete {
			when = transcript.Object("start", millis(e.Time), "end", millis(e.Time))
		}
		p.add("reasoning", "text", b.Text, "metadata", seal, "time", when)
	default:
		r.other(p, b)
	}
}

func sealOf(t eventlog.Thinking, model string) jsontext.Value {
	by := "anthropic"
	switch provider.OfBlock(t, model) {
	case provider.OpenAI:
		by = "openai"
	case provider.Gemini:
		by = "google"
	case provider.Host:
		if list := jsontext.Value(t.Signature); list.IsValid() {
			return transcript.Object("openrouter", list)
		}
		return nil
	case provider.Anthropic, provider.Unknown:
	}
	signature, id := t.Signature, ""
	switch {
	case t.EncryptedContent == "":
	case content.IsReasoningID(t.Signature):
		signature, id = "", t.Signature
	default: // the harness omits reasoning without an id
		id = content.MadeUpReasoningID(t.EncryptedContent)
	}
	return transcript.Object(by, transcript.Object("signature", transcript.Optional(signature), "itemId", transcript.Optional(id),
		"reasoningEncryptedContent", transcript.Optional(t.EncryptedContent), "redactedData", transcript.Optional(t.RedactedData)))
}

// other adds media and the harness's own blocks. All others are omitted with a warning.
func (r *renderer) other(p *parts, block eventlog.Block) {
	switch b := block.(type) {
	case eventlog.Media:
		p.add("file", "mime", b.MIMEType, "url", content.URL(b))
	case eventlog.ProviderBlock:
		if b.Provider == Name {
			p.raw(b.JSON, 0)
			return
		}
		r.warn("a block of %s, of which opencode has none, is left out", b.Provider)
	}
}

func (r *renderer) tool(p *parts, call eventlog.ToolCall, e *eventlog.Event, results map[string]result) {
	input := jsontext.Value(transcript.WrapArguments(call.Arguments))
	done, ok := results[call.CallID]
	if !ok {
		p.add("tool", "callID", call.CallID, "tool", call.Name, "state", transcript.Object("status", "pending", "input", input, "raw", ""))
		return
	}
	r.place(done.event.ID, p.message)
	exit := done.event.Labels[LabelExit]
	output, attachments := r.output(p, done.block)
	interrupted := done.event.Labels[labelInterrupted] == "true"
	var state jsontext.Value
	switch {
	case interrupted:
		state = transcript.Object("status", "error", "input", input, "error", "Tool execution aborted")
	case done.block.IsError && exit == "":
		state = transcript.Object("status", "error", "input", input, "error", output)
	default:
		state = transcript.Object("status", "completed", "input", input, "output", output, "title", "")
	}
	var metadata, attached any
	if r.metadata {
		var code, stopped, cut any
		if n, err := strconv.Atoi(exit); err == nil {
			code = n
		}
		if interrupted {
			stopped, cut = true, output
		}
		metadata = transcript.Object("exit", code, "interrupted", stopped, "output", cut,
			"sessionId", transcript.Optional(done.event.Labels[transcript.LabelSubagentSession]))
	}
	if len(attachments) > 0 {
		attached = attachments
	}
	p.add("tool", "callID", call.CallID, "tool", call.Name, "state", transcript.With(state, "metadata", metadata,
		"time", transcript.Object("start", millis(e.Time), "end", millis(done.event.Time)), "attachments", attached))
}

func (r *renderer) output(p *parts, block eventlog.ToolResult) (joined string, attachments []jsontext.Value) {
	var texts []string
	for _, c := range block.Content {
		switch b := c.(type) {
		case eventlog.Text:
			texts = append(texts, b.Text)
		case eventlog.Media:
			seed := p.message + "/" + strconv.Itoa(len(p.list))
			attachments = append(attachments, transcript.Object("id", partID(seed, len(attachments)+1), "sessionID", p.session,
				"messageID", p.message, "type", "file", "mime", b.MIMEType, "url", content.URL(b)))
		case eventlog.ProviderBlock:
			texts = append(texts, b.JSON)
		}
	}
	return strings.Join(texts, "\n"), attachments
}

func tokensOf(labels map[string]string) jsontext.Value {
	u := transcript.UsageOf(labels)
	return transcript.Object("input", u.Fresh(), "output", u.Output,
		"reasoning", 0, "cache", transcript.Object("read", u.CacheRead, "write", u.CacheWrite))
}
