package opencode

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	"github.com/contextd/contextd/internal/harness/transcript/jsonvalue"
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

// assistant adds the steps of a reply. Events of one group are one step.
func (r *renderer) assistant(p *parts, events []eventlog.Event, results map[string]result) jsonvalue.Value {
	info := r.info(p.message, "assistant", events[0].Time)
	group, open, calls := "", false, false
	labels := map[string]string{}
	last := events[0].Time
	finish := func() {
		if open && (r.complete || labels[transcript.LabelPromptTokens] != "") {
			reason := "stop"
			if calls {
				reason = "tool-calls"
			}
			p.add("step-finish", text("reason", reason), number("cost", 0), member("tokens", tokensOf(labels)))
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
			r.model = m.Model
			info.Set("modelID", jsonvalue.String(m.Model))
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
	info.Set("tokens", tokensOf(labels))
	if r.directory != "" {
		info.Set("path", jsonvalue.Object(text("cwd", r.directory), text("root", r.directory)))
	}
	if r.complete {
		r.requireReply(&info, p.message, calls)
		info.Get("time").Set("completed", jsonvalue.Raw(strconv.FormatInt(millis(last), 10)))
	}
	return info
}

// requireReply adds what the harness requires of a reply.
func (r *renderer) requireReply(info *jsonvalue.Value, message string, calls bool) {
	finish := "stop"
	if calls {
		finish = "tool-calls"
	}
	parent := r.parent
	if parent == "" {
		parent = message // nobody asked, and there must be one
	}
	for _, m := range []jsonvalue.Member{
		text("parentID", parent), text("modelID", r.model), text("providerID", providerOf(r.model)),
		text("mode", "build"), text("agent", "build"), number("cost", 0), text("finish", finish),
	} {
		info.Set(m.Name, m.Value)
	}
}

func (r *renderer) said(p *parts, block eventlog.Block, e *eventlog.Event, model string) {
	switch b := block.(type) {
	case eventlog.Text:
		p.add("text", text("text", b.Text))
	case eventlog.Thinking:
		part := p.add("reasoning", text("text", b.Text))
		if b.Sealed() {
			part.Set("metadata", jsonvalue.Object(sealOf(b, model)))
		}
		if r.complete {
			part.Set("time", jsonvalue.Object(number("start", millis(e.Time)), number("end", millis(e.Time))))
		}
	default:
		r.other(p, b)
	}
}

func sealOf(t eventlog.Thinking, model string) jsonvalue.Member {
	var v jsonvalue.Value
	by := "anthropic"
	switch provider.OfBlock(t, model) {
	case provider.OpenAI:
		by = "openai"
	case provider.Gemini:
		by = "google"
	case provider.Anthropic, provider.Unknown:
	}
	switch {
	case t.EncryptedContent == "":
		v.SetString("signature", t.Signature)
	case content.IsReasoningID(t.Signature):
		v.SetString("itemId", t.Signature)
	case t.Signature != "":
		v.SetString("signature", t.Signature)
		fallthrough
	default: // without an id the harness leaves it out
		v.SetString("itemId", content.MadeUpReasoningID(t.EncryptedContent))
	}
	v.SetString("reasoningEncryptedContent", t.EncryptedContent)
	v.SetString("redactedData", t.RedactedData)
	return member(by, v)
}

// other adds media, and blocks that are the harness's own.
func (r *renderer) other(p *parts, block eventlog.Block) {
	switch b := block.(type) {
	case eventlog.Media:
		p.add("file", text("mime", b.MIMEType), text("url", mediaURL(b)))
	case eventlog.ProviderBlock:
		if b.Provider == Name {
			p.raw(b.JSON, 0)
			return
		}
		r.warning("a block of %s, of which opencode has none, is left out", b.Provider)
	}
}

func mediaURL(m eventlog.Media) string {
	if m.Data == "" {
		return m.URI
	}
	return "data:" + m.MIMEType + ";base64," + base64.StdEncoding.EncodeToString([]byte(m.Data))
}

func (r *renderer) tool(p *parts, call eventlog.ToolCall, e *eventlog.Event, results map[string]result) {
	input := member("input", jsonvalue.Raw(transcript.WrapArguments(call.Arguments)))
	done, ok := results[call.CallID]
	if !ok {
		p.add("tool", text("callID", call.CallID), text("tool", call.Name),
			member("state", jsonvalue.Object(text("status", "pending"), input, text("raw", ""))))
		return
	}
	r.place(done.event.ID, p.message)
	exit := done.event.Labels[LabelExit]
	output, attachments := r.output(p, done.block)
	state := jsonvalue.Object(text("status", "completed"), input, text("output", output), text("title", ""))
	interrupted := done.event.Labels[labelInterrupted] == "true"
	switch {
	case interrupted:
		state = jsonvalue.Object(text("status", "error"), input, text("error", "Tool execution aborted"))
	case done.block.IsError && exit == "":
		state = jsonvalue.Object(text("status", "error"), input, text("error", output))
	}
	if r.metadata {
		metadata := jsonvalue.Object()
		if _, err := strconv.Atoi(exit); err == nil {
			metadata.Set("exit", jsonvalue.Raw(exit))
		}
		if interrupted {
			metadata.Set("interrupted", jsonvalue.Raw("true"))
			metadata.Set("output", jsonvalue.String(output))
		}
		metadata.SetString("sessionId", done.event.Labels[transcript.LabelSubagentSession])
		state.Set("metadata", metadata)
	}
	state.Set("time", jsonvalue.Object(number("start", millis(e.Time)), number("end", millis(done.event.Time))))
	if len(attachments) > 0 {
		state.Set("attachments", jsonvalue.List(attachments...))
	}
	p.add("tool", text("callID", call.CallID), text("tool", call.Name), member("state", state))
}

func (r *renderer) output(p *parts, block eventlog.ToolResult) (joined string, attachments []jsonvalue.Value) {
	var texts []string
	for _, c := range block.Content {
		switch b := c.(type) {
		case eventlog.Text:
			texts = append(texts, b.Text)
		case eventlog.Media:
			seed := p.message + "/" + strconv.Itoa(len(p.list))
			attachments = append(attachments, jsonvalue.Object(text("id", partID(seed, len(attachments)+1)), text("sessionID", p.session),
				text("messageID", p.message), text("type", "file"), text("mime", b.MIMEType), text("url", mediaURL(b))))
		case eventlog.ProviderBlock:
			texts = append(texts, b.JSON)
		}
	}
	return strings.Join(texts, "\n"), attachments
}

func tokensOf(labels map[string]string) jsonvalue.Value {
	count := func(key string) int64 {
		n, err := strconv.ParseInt(labels[key], 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	read, write := count(transcript.LabelCacheReadTokens), count(transcript.LabelCacheWriteTokens)
	prompt := count(transcript.LabelPromptTokens)
	return jsonvalue.Object(number("input", max(prompt-read-write, 0)), number("output", count(transcript.LabelOutputTokens)),
		number("reasoning", 0), member("cache", jsonvalue.Object(number("read", read), number("write", write))))
}
