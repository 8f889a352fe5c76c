package opencode

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// result is a tool's result and the event that brought it.
type result struct {
	block eventlog.ToolResult
	event *eventlog.Event
}

// resultsOf finds the results in events by the id of their call.
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

// assistant adds the steps of a reply. Events of one group are one step. The mode is empty but
// of a compaction's summary.
func (r *renderer) assistant(p *parts, events []eventlog.Event, results map[string]result, mode string) jsontext.Value {
	group, open, calls := "", false, false
	model := any(nil)
	labels := map[string]string{}
	last := events[0].Time
	reason := func() string {
		if calls {
			return "tool-calls"
		}
		return "stop"
	}
	finish := func() {
		if open && (r.complete || labels[transcript.LabelPromptTokens] != "") {
			p.add("step-finish", "reason", reason(), "cost", 0, "tokens", tokensOf(labels))
		}
	}
	for i := range events {
		m, ok := events[i].Body.(*eventlog.Message)
		if !ok || m.Role != eventlog.RoleAssistant {
			continue
		}
		if !open || m.GroupID == "" || m.GroupID != group {
			finish()
			p.add("step-start")
			group, open, calls = m.GroupID, true, false
			labels = map[string]string{}
		}
		if events[i].Labels[transcript.LabelPromptTokens] != "" {
			labels = events[i].Labels
		}
		if m.Model != "" {
			r.model, model = m.Model, m.Model
		}
		for _, b := range m.Blocks {
			if call, ok := b.(eventlog.ToolCall); ok {
				calls = true
				r.tool(p, call, &events[i], results)
				if done, ok := results[call.CallID]; ok && done.event.Time.After(last) {
					last = done.event.Time
				}
				continue
			}
			r.said(p, b, &events[i], m.Model)
		}
	}
	finish()
	members := []any{"modelID", model, "tokens", tokensOf(labels)}
	if r.directory != "" {
		members = append(members, "path", transcript.Object("cwd", r.directory, "root", r.directory))
	}
	agent, completed := any(nil), any(nil)
	if mode != "" {
		agent = mode
	}
	if r.complete {
		completed = millis(last)
		members = append(members, r.required(p.message, model, mode, reason())...)
	} else {
		members = append(members, "mode", agent, "agent", agent)
	}
	if mode != "" {
		members = append(members, "summary", true)
	}
	return r.info(p.message, "assistant", events[0].Time, completed, members...)
}

// required are the members that the harness requires of a reply, of which the model may be
// there.
func (r *renderer) required(message string, model any, mode, finish string) []any {
	parent := cmp.Or(r.parent, message) // where nobody asked, there must be one
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
	case provider.Anthropic, provider.Unknown:
	}
	signature, id := t.Signature, ""
	switch {
	case t.EncryptedContent == "":
	case content.IsReasoningID(t.Signature):
		signature, id = "", t.Signature
	default: // without an id the harness leaves it out
		id = content.MadeUpReasoningID(t.EncryptedContent)
	}
	return transcript.Object(by, transcript.Object("signature", transcript.Optional(signature), "itemId", transcript.Optional(id),
		"reasoningEncryptedContent", transcript.Optional(t.EncryptedContent), "redactedData", transcript.Optional(t.RedactedData)))
}

// other adds media, and blocks that are the harness's own.
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
