package pi

import (
	"strconv"
	"time"

	"github.com/contextd/contextd/internal/harness/transcript"
	"github.com/contextd/contextd/internal/harness/transcript/jsonvalue"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// version is that of the files written.
const version = 3

// systemType is the type of the custom entries that hold system messages: pi has
// its own system prompt and shows such entries to no model.
const systemType = "contextd.system"

// compactionType is that of the entries that hold compactions whose summary cannot be
// read: behind one of its own pi would go on without what the summary stands for.
const compactionType = "contextd.compaction"

// renderer makes entries of events. It goes through a branch in order, since an
// entry names the one before it.
type renderer struct {
	parent string    // native id of the entry before
	last   time.Time // of the last entry that has a time
	warn   func(format string, args ...any)
}

func (r *renderer) wrote(id string, at time.Time) {
	r.parent = id
	if !at.IsZero() {
		r.last = at
	}
}

func (r *renderer) warning(format string, args ...any) {
	if r.warn != nil {
		r.warn(format, args...)
	}
}

func header(id, cwd, timestamp string) jsonvalue.Value {
	return jsonvalue.Object(
		member("type", jsonvalue.String(sessionType)), member("version", number(version)), member("id", jsonvalue.String(id)),
		member("timestamp", jsonvalue.String(timestamp)), member("cwd", jsonvalue.String(cwd)),
	)
}

func member(name string, v jsonvalue.Value) jsonvalue.Member {
	return jsonvalue.Member{Name: name, Value: v}
}

func number[N int | int64 | uint64](n N) jsonvalue.Value {
	if n < 0 {
		return jsonvalue.Raw(strconv.FormatInt(int64(n), 10))
	}
	return jsonvalue.Raw(strconv.FormatUint(uint64(n), 10))
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// millis is the time of a message, which it says beside its entry.
func millis(t time.Time) jsonvalue.Member { return member("timestamp", number(t.UnixMilli())) }

// at is an event's time, or that of the entry before.
func (r *renderer) at(e *eventlog.Event) time.Time {
	switch {
	case !e.Time.IsZero():
		return e.Time
	case !r.last.IsZero():
		return r.last
	}
	return time.Unix(0, 0)
}

// envelope begins an entry, which has more members than these.
func (r *renderer) envelope(kind, id string, at time.Time, more ...jsonvalue.Member) jsonvalue.Value {
	parent := jsonvalue.Raw("null")
	if r.parent != "" {
		parent = jsonvalue.String(r.parent)
	}
	return jsonvalue.Object(append(append(make([]jsonvalue.Member, 0, 8),
		member("type", jsonvalue.String(kind)), member("id", jsonvalue.String(id)), member("parentId", parent),
		member("timestamp", jsonvalue.String(stamp(at)))), more...)...)
}

// entry makes the entry of one event, or of the events that are one reply. ok is
// false if they say nothing that a file could hold.
func (r *renderer) entry(events []eventlog.Event) (v jsonvalue.Value, ok bool) {
	first := &events[0]
	m, ok := first.Body.(*eventlog.Message)
	if !ok {
		return jsonvalue.Value{}, false
	}
	at := r.at(first)
	switch m.Role {
	case eventlog.RoleSystem:
		v := r.envelope("custom", first.ID, at)
		v.Set("customType", jsonvalue.String(systemType))
		v.Set("data", systemData(m.Blocks))
		return v, true
	case eventlog.RoleAssistant:
		return r.message(first.ID, at, r.assistant(events, at)), true
	case eventlog.RoleTool:
		if len(m.Blocks) != 1 {
			return jsonvalue.Value{}, false
		}
		result, ok := m.Blocks[0].(eventlog.ToolResult)
		return r.message(first.ID, at, r.result(result, at)), ok
	case eventlog.RoleUser, eventlog.RoleUnspecified:
	}
	return r.user(first, m, at), true
}

func (r *renderer) user(e *eventlog.Event, m *eventlog.Message, at time.Time) jsonvalue.Value {
	switch {
	case e.Labels[labelType] == "branch_summary":
		v := r.envelope("branch_summary", e.ID, at)
		v.Set("fromId", jsonvalue.String("root"))
		v.Set("summary", jsonvalue.String(branchSummary(textOf(m.Blocks))))
		return v
	case e.Labels[transcript.LabelInjected] == "true":
		v := r.envelope("custom_message", e.ID, at)
		v.Set("customType", jsonvalue.String("contextd"))
		v.Set("content", r.content(m.Blocks))
		v.Set("display", jsonvalue.Raw("true"))
		return v
	}
	return r.message(e.ID, at, jsonvalue.Object(member("role", jsonvalue.String("user")), member("content", r.content(m.Blocks)), millis(at)))
}

func (r *renderer) message(id string, at time.Time, inner jsonvalue.Value) jsonvalue.Value {
	return r.envelope("message", id, at, member("message", inner))
}

func (r *renderer) result(result eventlog.ToolResult, at time.Time) jsonvalue.Value {
	name := result.ToolName
	if name == "" {
		name = "unknown"
	}
	return jsonvalue.Object(
		member("role", jsonvalue.String("toolResult")), member("toolCallId", jsonvalue.String(result.CallID)),
		member("toolName", jsonvalue.String(name)), member("content", r.content(result.Content)),
		member("isError", jsonvalue.Raw(strconv.FormatBool(result.IsError))), millis(at),
	)
}

func (r *renderer) assistant(events []eventlog.Event, at time.Time) jsonvalue.Value {
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
	return jsonvalue.Object(
		member("role", jsonvalue.String("assistant")), member("content", r.content(blocks)),
		member("api", jsonvalue.String(api)), member("provider", jsonvalue.String(by)), member("model", jsonvalue.String(model)),
		member("usage", usageOf(labels)), member("stopReason", jsonvalue.String(stop)), millis(at),
	)
}

// apiOf names the API and the provider of a model as pi does.
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

func usageOf(labels map[string]string) jsonvalue.Value {
	count := func(key string) uint64 {
		n, err := strconv.ParseUint(labels[key], 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	prompt, output := count(transcript.LabelPromptTokens), count(transcript.LabelOutputTokens)
	read, write := count(transcript.LabelCacheReadTokens), count(transcript.LabelCacheWriteTokens)
	zero := jsonvalue.Raw("0")
	return jsonvalue.Object(
		member("input", number(prompt-min(prompt, read+write))), member("output", number(output)),
		member("cacheRead", number(read)), member("cacheWrite", number(write)), member("totalTokens", number(prompt+output)),
		member("cost", jsonvalue.Object(member("input", zero), member("output", zero), member("cacheRead", zero),
			member("cacheWrite", zero), member("total", zero))),
	)
}
