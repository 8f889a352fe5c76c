package rules

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Limits of a request to Anthropic.
const (
	anthropicBytes    = 32 << 20
	anthropicImage    = 5 << 20
	anthropicSide     = 8000
	anthropicMessages = 100_000
	anthropicMarks    = 4
	// A model with a window of 200,000 tokens takes so many images and documents. Where there
	// are more than few images, their sides are shorter.
	anthropicMedia    = 100
	anthropicFew      = 20
	anthropicManySide = 2000
)

var (
	anthropicID     = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	anthropicName   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	anthropicServer = regexp.MustCompile(`^(srvtoolu_[a-zA-Z0-9_]+|mcptoolu_[a-zA-Z0-9_-]+)$`)
)

// anthropicCheck reads a request as Anthropic's Messages API does.
type anthropicCheck struct {
	*report
	ids map[string]bool
	// waiting are the uses of server tools at the end of the assistant's message, with the types of the results that
	// they wait for.
	waiting map[string]string
	// cited says of each type of block whether the last one has citations.
	cited map[string]bool
	// marks counts cache breakpoints; short is set once one of five minutes was seen.
	marks int
	short bool
	// media counts images and documents, and long are the lines of images with a side that many
	// may not have.
	media int
	long  []int
}

// anthropicTurn is what of a message counts for its neighbours.
type anthropicTurn struct {
	line           int
	role           string
	calls, results []string
	// ending is the text that it ends with.
	ending string
}

func checkAnthropic(r *report, lines [][]byte) {
	c := &anthropicCheck{report: r, ids: map[string]bool{}, waiting: map[string]string{}, cited: map[string]bool{}}
	for i, line := range lines {
		c.decoded(i, line, anthropicDepth, false)
	}
	var turns []anthropicTurn
	c.request(lines, anthropicBytes, "system", c.system, func(line int, o object) {
		turns = append(turns, c.message(line, o))
	})
	if len(turns) > anthropicMessages {
		c.add(-1, "size", "%d messages, more than %d", len(turns), anthropicMessages)
	}
	if c.marks > anthropicMarks {
		c.add(-1, "cache", "%d breakpoints, more than %d", c.marks, anthropicMarks)
	}
	if c.media > anthropicMedia {
		c.add(-1, "size", "%d images and documents, more than %d", c.media, anthropicMedia)
	}
	if c.images > anthropicFew {
		for _, line := range c.long {
			c.add(line, "size", "one of %d images has a side of more than %d pixels", c.images, anthropicManySide)
		}
	}
	c.order(turns)
}

func (c *anthropicCheck) system(line int, prompt json.RawMessage) {
	blocks := c.list(line, "system", prompt)
	if len(blocks) == 0 {
		c.add(line, "content", "system: empty")
	}
	for i, block := range blocks {
		c.block(line, fmt.Sprintf("system[%d]", i), block, "system", nil)
	}
}

func (c *anthropicCheck) message(line int, o object) anthropicTurn {
	c.members(line, "line", o, []string{"role", "content"}, nil)
	t := anthropicTurn{line: line, role: c.text(line, "role", o["role"])}
	if t.role != "user" && t.role != "assistant" {
		c.add(line, "role", "%q", t.role)
	}
	blocks := c.list(line, "content", o["content"])
	if len(blocks) == 0 {
		c.add(line, "content", "empty")
	}
	asked := map[string]string{}
	if t.role == "assistant" {
		asked, c.waiting = c.waiting, map[string]string{}
	}
	kind, thinks := "", false
	for i, block := range blocks {
		where := fmt.Sprintf("content[%d]", i)
		before := kind
		kind = c.block(line, where, block, t.role, &t)
		switch {
		case before == "tool_use" && kind != "tool_use":
			c.add(line, "calls last", "%s: %s behind a tool_use", where, kind)
		case kind == "tool_result" && before != "" && before != "tool_result":
			c.add(line, "results first", "%s: behind %s", where, before)
		case t.role == "user" && kind != "tool_result" && c.codeWaits():
			c.add(line, "server tools", "%s: %s where code waits for results alone", where, kind)
		}
		c.server(line, where, kind, block, asked)
		thinks = thinks || kind == "thinking"
	}
	if c.returning && t.role == "assistant" && !thinks {
		c.add(line, "thinking", "no reasoning")
	}
	for _, id := range slices.Sorted(maps.Keys(asked)) {
		c.add(line, "server tools", "%s has no result", id)
	}
	if kind == "thinking" || kind == "redacted_thinking" {
		c.add(line, "thinking", "the last block is %s", kind)
	}
	if kind != "text" {
		t.ending = ""
	}
	return t
}

// server holds uses of server tools and their results together. asked is the type of the result that each use waits for
// that has to be answered in this message. One at the end, next to calls, may wait for the next message.
func (c *anthropicCheck) server(line int, where, kind string, raw json.RawMessage, asked map[string]string) {
	switch kind {
	case "tool_use":
		c.caller(line, where, raw, asked)
		return
	case "tool_result":
		return
	}
	if !strings.HasSuffix(kind, "_tool_use") {
		maps.Copy(asked, c.waiting)
		clear(c.waiting)
	}
	var b struct {
		ID        string `json:"id"`
		Name      string `json:"name"`
		ToolUseID string `json:"tool_use_id"`
	}
	switch {
	case strings.HasSuffix(kind, "_tool_use"):
		if json.Unmarshal(raw, &b) != nil || !anthropicServer.MatchString(b.ID) {
			c.add(line, "id", "%s: %q", where, b.ID)
		} else if c.ids[b.ID] {
			c.add(line, "id", "%s: %s is used twice", where, b.ID)
		}
		c.ids[b.ID] = true
		c.waiting[b.ID] = anthropicAnswers(kind, b.Name)
	case strings.HasSuffix(kind, "_tool_result"):
		if json.Unmarshal(raw, &b) != nil || asked[b.ToolUseID] != kind {
			c.add(line, "server tools", "%s: a result of nothing, or of another tool, %q", where, b.ToolUseID)
		}
		delete(asked, b.ToolUseID)
	}
}

func (c *anthropicCheck) codeWaits() bool {
	for _, result := range c.waiting {
		if strings.HasSuffix(result, "code_execution_tool_result") {
			return true
		}
	}
	return false
}

// caller holds a call to the code that made it, which waits for the call's result.
func (c *anthropicCheck) caller(line int, where string, raw json.RawMessage, asked map[string]string) {
	var call struct {
		Caller json.RawMessage `json:"caller"`
	}
	if json.Unmarshal(raw, &call) != nil || call.Caller == nil {
		return
	}
	where += ".caller"
	var by struct {
		Type string `json:"type"`
		ID   string `json:"tool_id"`
	}
	_ = json.Unmarshal(call.Caller, &by) // what is no string is no type, and choice says so
	switch by.Type {
	case "direct":
		c.object(line, where, call.Caller, []string{"type"}, nil)
		return
	case "code_execution_20250825", "code_execution_20260120":
	default:
		c.add(line, "type", "%s: no caller is %q", where, by.Type)
		return
	}
	c.object(line, where, call.Caller, []string{"type", "tool_id"}, nil)
	if result, ok := asked[by.ID]; ok {
		delete(asked, by.ID)
		c.waiting[by.ID] = result
	}
	if !strings.HasSuffix(c.waiting[by.ID], "code_execution_tool_result") {
		c.add(line, "server tools", "%s: no code waits as %q", where, by.ID)
	}
}

// anthropicAnswers is the type of the block that answers a use of a server tool.
func anthropicAnswers(kind, name string) string {
	if kind == "mcp_tool_use" {
		return "mcp_tool_result"
	}
	if name == "tool_search_tool_regex" || name == "tool_search_tool_bm25" {
		name = "tool_search"
	}
	return name + "_tool_result"
}

// order holds the messages to their order: turns, and calls with their results.
func (c *anthropicCheck) order(turns []anthropicTurn) {
	for i, t := range turns {
		var before anthropicTurn
		if i > 0 {
			before = turns[i-1]
		}
		switch {
		case i == 0 && t.role != "user":
			c.add(t.line, "alternation", "the first message is the %s's", t.role)
		case t.role == before.role:
			c.add(t.line, "alternation", "two messages of the %s", t.role)
		}
		pairing(c.report, t.line, before.calls, t.results)
	}
	if n := len(turns); n > 0 {
		last := turns[n-1]
		pairing(c.report, last.line, last.calls, nil)
		if last.role == "assistant" && strings.TrimSpace(last.ending) != "" && strings.TrimRight(last.ending, " \t\r\n") != last.ending {
			c.add(last.line, "end", "the last assistant message ends in whitespace")
		}
	}
}

// pairing holds results to the calls before them: the same, in the same order.
func pairing(r *report, line int, calls, results []string) {
	if len(calls) != len(results) {
		r.add(line, "pairs", "%d results of %d calls", len(results), len(calls))
		return
	}
	for i := range calls {
		if calls[i] != results[i] {
			r.add(line, "pairs", "result %d is of %s, the call is %s", i, results[i], calls[i])
		}
	}
}
