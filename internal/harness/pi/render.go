package pi

import (
	"cmp"
	"encoding/base64"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// version is the version of the files that are written.
const version = 3

// systemType is the type of custom entries with system messages. pi has its own system prompt and shows such
// entries to no model.
const systemType = "contextd.system"

// compactionType is the type of custom entries with compactions that have no summary. After a compaction of
// its own, pi would drop what has no summary to replace it.
const compactionType = "contextd.compaction"

// renderer makes entries of events. It must get the events of a branch in order, because each entry names the
// one before.
type renderer struct {
	parent string    // id in the file of the entry before
	last   time.Time // of the last entry that has a time
	warn   func(format string, args ...any)
}

func (r *renderer) wrote(id string, at time.Time) {
	r.parent = id
	if !at.IsZero() {
		r.last = at
	}
}

func header(id, cwd, timestamp string, more ...any) jsontext.Value {
	return transcript.With(transcript.Object("type", sessionType, "version", version, "id", id, "timestamp", timestamp, "cwd", cwd), more...)
}

// at returns an event's time, or that of the last entry with a time.
func (r *renderer) at(e *eventlog.Event) time.Time {
	switch {
	case !e.Time.IsZero():
		return e.Time
	case !r.last.IsZero():
		return r.last
	}
	return time.Unix(0, 0)
}

// envelope makes an entry with these members and more.
func (r *renderer) envelope(kind, id string, at time.Time, more ...any) jsontext.Value {
	parent := transcript.Null
	if r.parent != "" {
		parent = transcript.JSON(r.parent)
	}
	return transcript.With(transcript.Object("type", kind, "id", id, "parentId", parent, "timestamp", transcript.Stamp(at)), more...)
}

// entry makes the entry of one event, or of several that are one reply. ok is false if pi has no entry for
// them.
func (r *renderer) entry(events []eventlog.Event) (v jsontext.Value, ok bool) {
	first := &events[0]
	m, ok := first.Body.(*eventlog.Message)
	if !ok {
		return nil, false
	}
	at := r.at(first)
	switch m.Role {
	case eventlog.RoleSystem:
		return r.envelope("custom", first.ID, at, "customType", systemType, "data", systemData(m.Blocks)), true
	case eventlog.RoleAssistant:
		return r.envelope("message", first.ID, at, "message", r.assistant(events, at)), true
	case eventlog.RoleTool:
		if len(m.Blocks) != 1 {
			return nil, false
		}
		result, ok := m.Blocks[0].(eventlog.ToolResult)
		return r.envelope("message", first.ID, at, "message", r.result(result, at)), ok
	case eventlog.RoleUser, eventlog.RoleUnspecified:
	}
	return r.user(first, m, at), true
}

func (r *renderer) user(e *eventlog.Event, m *eventlog.Message, at time.Time) jsontext.Value {
	switch {
	case e.Labels[labelType] == "branch_summary":
		return r.envelope("branch_summary", e.ID, at, "fromId", "root", "summary", branchSummary(strings.Join(transcript.Texts(m.Blocks), "\n")))
	case e.Labels[transcript.LabelInjected] == "true":
		return r.envelope("custom_message", e.ID, at, "customType", "contextd", "content", r.content(m.Blocks), "display", true)
	}
	return r.envelope("message", e.ID, at, "message",
		transcript.Object("role", "user", "content", r.content(m.Blocks), "timestamp", at.UnixMilli()))
}

func (r *renderer) result(result eventlog.ToolResult, at time.Time) jsontext.Value {
	return transcript.Object("role", "toolResult", "toolCallId", result.CallID, "toolName", cmp.Or(result.ToolName, "unknown"),
		"content", r.content(result.Content), "isError", result.IsError, "timestamp", at.UnixMilli())
}

func (r *renderer) assistant(events []eventlog.Event, at time.Time) jsontext.Value {
	var blocks []eventlog.Block
	labels := map[string]string{}
	model := ""
	for _, e := range events {
		m, ok := e.Body.(*eventlog.Message)
		if !ok {
			continue
		}
		blocks = append(blocks, m.Blocks...)
		if m.Model != "" {
			model = m.Model
		}
		if e.Labels[transcript.LabelPromptTokens] != "" || e.Labels[labelStopReason] != "" {
			labels = e.Labels
		}
	}
	api, by := apiOf(model)
	stop := "stop"
	for _, b := range blocks {
		if _, call := b.(eventlog.ToolCall); call {
			stop = "toolUse"
		}
	}
	if reason := labels[labelStopReason]; reason != "" {
		stop = reason
	}
	return transcript.Object("role", "assistant", "content", r.content(blocks), "api", api, "provider", by, "model", model,
		"usage", usageOf(labels), "stopReason", stop, "timestamp", at.UnixMilli())
}

// apiOf returns pi's names for the API and the provider of a model.
func apiOf(model string) (api, by string) {
	switch provider.Of(model) {
	case provider.Anthropic:
		return "anthropic-messages", "anthropic"
	case provider.OpenAI:
		return "openai-responses", "openai"
	case provider.Gemini:
		return "google-generative-ai", "google"
	case provider.Unknown:
	}
	return "openai-completions", "unknown"
}

func usageOf(labels map[string]string) jsontext.Value {
	u := transcript.UsageOf(labels)
	return transcript.Object("input", u.Fresh(), "output", u.Output,
		"cacheRead", u.CacheRead, "cacheWrite", u.CacheWrite, "totalTokens", u.Prompt+u.Output,
		"cost", transcript.Object("input", 0, "output", 0, "cacheRead", 0, "cacheWrite", 0, "total", 0))
}

// onLine removes line breaks between the tokens of arguments, since an entry is one line; without line
// breaks, spaces stay.
func onLine(arguments string) string {
	if strings.ContainsAny(arguments, "\n\r") {
		return transcript.Compact([]byte(arguments))
	}
	return arguments
}

// systemData returns the text of a system message, or a list of several.
func systemData(blocks []eventlog.Block) jsontext.Value {
	texts := transcript.Texts(blocks)
	if len(texts) == 1 {
		return transcript.JSON(texts[0])
	}
	return transcript.List(texts...)
}

// content makes the content of a message; blocks that pi has no form for are omitted with a warning.
func (r *renderer) content(blocks []eventlog.Block) jsontext.Value {
	items := make([]jsontext.Value, 0, len(blocks))
	details, all := signatures(blocks)
	if !all {
		r.warn("the seal of a host of models on reasoning, which pi cannot hold, is left out")
	}
	signature, phase := "", ""
	for i, block := range blocks {
		switch b := block.(type) {
		case eventlog.Text:
			items = append(items, transcript.Object("type", "text", "text", b.Text, "textSignature", transcript.Optional(cmp.Or(phase, signature))))
			signature, phase = "", ""
		case eventlog.Thinking:
			if isHosted(b) {
				if b.Signature = ""; b.Text == "" {
					continue
				}
			}
			items = append(items, thinkingOf(b))
		case eventlog.ToolCall:
			sealed := transcript.Optional(cmp.Or(details[b.CallID], signature))
			items = append(items, transcript.Object("type", "toolCall", "id", b.CallID, "name", b.Name,
				"arguments", jsontext.Value(onLine(transcript.WrapArguments(b.Arguments))), "thoughtSignature", sealed))
			signature = ""
		case eventlog.Media:
			items = append(items, r.media(b))
		case eventlog.ProviderBlock:
			var ok bool
			if signature, ok = thoughtSignature(b); ok {
				continue
			}
			if phase = r.phaseSignature(i, b); phase != "" {
				continue
			}
			if b.Provider == Name {
				items = append(items, jsontext.Value(b.JSON))
				continue
			}
			r.warn("a block of %s, of which pi has none, is left out", b.Provider)
		}
	}
	return transcript.List(items...)
}

func thoughtSignature(b eventlog.ProviderBlock) (string, bool) {
	var google struct {
		Signature string `json:"thoughtSignature"`
	}
	if b.Provider != content.Google || transcript.Decode([]byte(b.JSON), &google) != nil {
		return "", false
	}
	return google.Signature, google.Signature != ""
}

func (r *renderer) media(m eventlog.Media) jsontext.Value {
	if m.Data == "" {
		r.warn("media with a URI, which pi cannot hold, is named in a text")
		return transcript.Object("type", "text", "text", "["+m.MIMEType+" "+m.URI+"]")
	}
	return transcript.Object("type", "image", "data", base64.StdEncoding.EncodeToString([]byte(m.Data)), "mimeType", m.MIMEType)
}

// thinkingOf makes a thinking block. pi keeps encrypted reasoning as OpenAI's whole item, in a string.
func thinkingOf(t eventlog.Thinking) jsontext.Value {
	v := transcript.Object("type", "thinking", "thinking", t.Text)
	switch {
	case t.RedactedData != "":
		return transcript.With(v, "thinkingSignature", t.RedactedData, "redacted", true)
	case t.EncryptedContent != "":
		id := content.MadeUpReasoningID(t.EncryptedContent)
		if content.IsReasoningID(t.Signature) {
			id = t.Signature
		}
		var summary []jsontext.Value
		if t.Text != "" {
			summary = append(summary, transcript.Object("type", "summary_text", "text", t.Text))
		}
		item := transcript.Object("id", id, "type", "reasoning", "encrypted_content", t.EncryptedContent, "summary", summary)
		return transcript.With(v, "thinkingSignature", string(item))
	}
	return transcript.With(v, "thinkingSignature", transcript.Optional(t.Signature))
}
