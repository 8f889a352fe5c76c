package projection_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// prose draws a text of up to about so many bytes: lines, one line, or wide characters.
func prose(most int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		n := rapid.SampledFrom([]int{0, 20, 200, most / 10, most}).Draw(t, "size")
		unit := rapid.SampledFrom([]string{
			"see internal/reduce/view.go:42 for parseConfig\n", "and then ", "日本語のテキスト", "{\"id\": 1234567}\n", "x",
		}).Draw(t, "unit")
		return strings.Repeat(unit, min(n, most)/len(unit)+1)
	})
}

// genResult draws a result: failures of every kind, and successes that look like one.
func genResult(t *rapid.T, id string) eventlog.ToolResult {
	text := prose(4000).Draw(t, "body")
	r := eventlog.ToolResult{CallID: id}
	switch rapid.IntRange(0, 11).Draw(t, "outcome") {
	case 0, 1:
		r.IsError = true
	case 2:
		text = fmt.Sprintf(`{"status": "failed", "log": %q}`, text)
	case 3:
		text = "Error: " + text
	case 4:
		text = fmt.Sprintf(`{"level": "error", "is_error": true, "at": %q}`, text)
	case 5:
		return r
	case 6:
		r.Content = []eventlog.Block{eventlog.Media{MIMEType: "image/png", URI: "a.png", Tokens: 200}}
		return r
	}
	r.Content = []eventlog.Block{eventlog.Text{Text: text}}
	return r
}

func genThought(t *rapid.T) eventlog.Thinking {
	thought := eventlog.Thinking{Text: prose(1000).Draw(t, "thought")}
	switch rapid.IntRange(0, 5).Draw(t, "seal") {
	case 0:
		thought.EncryptedContent = thought.Text
	case 1:
		thought.Signature = "signature of it"
	case 2:
		thought.RedactedData = "redacted"
	}
	return thought
}

// genAssistant draws the next message, or the next part of one, of a model.
func genAssistant(t *rapid.T, head eventlog.Head) *eventlog.Message {
	m := &eventlog.Message{
		Role:    eventlog.RoleAssistant,
		Model:   rapid.SampledFrom([]string{"claude-x", "gpt-x", "gemini-x", ""}).Draw(t, "model"),
		GroupID: rapid.SampledFrom([]string{"", "", "", head.LastGroup, fmt.Sprintf("g%d", head.Seq)}).Draw(t, "group"),
		Pinned:  rapid.IntRange(0, 30).Draw(t, "pinned") == 0,
	}
	for range rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "thoughts") {
		m.Blocks = append(m.Blocks, genThought(t))
	}
	calls := rapid.IntRange(0, 3).Draw(t, "calls")
	if calls == 0 || rapid.IntRange(0, 3).Draw(t, "speaks") == 0 {
		m.Blocks = append(m.Blocks, eventlog.Text{Text: prose(300).Draw(t, "text")})
	}
	taken := map[string]bool{}
	for _, o := range head.OpenCalls {
		taken[o.CallID] = o.GroupID != "" && o.GroupID == m.GroupID
	}
	for i := range calls {
		id := fmt.Sprintf("c%d.%d", head.Seq, i)
		if rapid.IntRange(0, 9).Draw(t, "reuse") == 0 {
			id = "again"
		}
		if taken[id] {
			continue
		}
		taken[id] = true
		m.Blocks = append(m.Blocks, genCall(t, id))
	}
	if len(m.Blocks) == 0 {
		m.Blocks = append(m.Blocks, eventlog.Text{Text: "Well."})
	}
	return m
}

// genCall draws a call of a few tools on a few files, so that they come again.
func genCall(t *rapid.T, id string) eventlog.ToolCall {
	return eventlog.ToolCall{
		CallID: id, Name: rapid.SampledFrom([]string{"read", "edit"}).Draw(t, "tool"),
		Arguments: fmt.Sprintf(`{"limit": %d, "path": "file%d.go"}`,
			rapid.IntRange(1, 3).Draw(t, "limit"), rapid.IntRange(0, 1).Draw(t, "file")),
	}
}

// genAnswers draws results for some of the open calls, perhaps in another order.
func genAnswers(t *rapid.T, head eventlog.Head) *eventlog.Message {
	m := &eventlog.Message{
		Role:   rapid.SampledFrom([]eventlog.Role{eventlog.RoleTool, eventlog.RoleTool, eventlog.RoleUser}).Draw(t, "by"),
		Pinned: rapid.IntRange(0, 30).Draw(t, "pinned") == 0,
	}
	newest := head.OpenCalls[max(0, len(head.OpenCalls)-3):]
	if rapid.IntRange(0, 4).Draw(t, "late") == 0 {
		newest = head.OpenCalls
	}
	for _, o := range rapid.SliceOfNDistinct(rapid.SampledFrom(newest), 1, min(3, len(newest)), rapid.ID[eventlog.OpenCall]).Draw(t, "answered") {
		m.Blocks = append(m.Blocks, genResult(t, o.CallID))
	}
	if m.Role == eventlog.RoleUser && rapid.Bool().Draw(t, "comments") {
		m.Blocks = append(m.Blocks, eventlog.Text{Text: prose(100).Draw(t, "comment")})
	}
	return m
}

func genMessage(t *rapid.T, head eventlog.Head) *eventlog.Message {
	kind := rapid.IntRange(0, 15).Draw(t, "kind")
	switch {
	case head.Seq == 0 && kind < 9 || kind == 15:
		return &eventlog.Message{Role: eventlog.RoleSystem, Blocks: []eventlog.Block{eventlog.Text{Text: prose(200).Draw(t, "text")}}}
	case len(head.OpenCalls) > 0 && kind < 10:
		return genAnswers(t, head)
	case head.Turns == 0 && kind < 12 || kind == 14:
		return &eventlog.Message{
			Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: prose(1000).Draw(t, "text")}},
			Pinned:  rapid.IntRange(0, 9).Draw(t, "pinned") == 0,
			GroupID: rapid.SampledFrom([]string{"", "", "", head.LastGroup}).Draw(t, "group"),
		}
	default:
		return genAssistant(t, head)
	}
}

// genEvent draws an event that a log with this head admits.
func genEvent(t *rapid.T, head eventlog.Head) eventlog.Event {
	e := eventlog.Event{ID: fmt.Sprintf("e%d", head.Seq+1)}
	if rapid.IntRange(0, 19).Draw(t, "other") == 0 {
		e.Body = &eventlog.Custom{Type: "note"}
		return e
	}
	m := genMessage(t, head)
	e.Body = m
	if m.Role == eventlog.RoleUser || m.Role == eventlog.RoleSystem {
		e.Labels = rapid.SampledFrom(reducetest.Labels).Draw(t, "labels")
	}
	return e
}

// genTarget draws a budget to reduce to before a policy is applied; mostly none.
func genTarget() *rapid.Generator[budget.Budget] {
	return rapid.Custom(func(t *rapid.T) budget.Budget {
		return budget.Budget{Target: rapid.SampledFrom([]uint64{0, 0, 3000, 10_000}).Draw(t, "target")}
	})
}
