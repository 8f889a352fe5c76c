package render

import (
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// anthropic is Anthropic's Messages API: the system line is the request's system
// blocks, each other line one of its messages. The user and the assistant take turns.
var anthropic = Format{
	Name: "anthropic", Fragments: anthropicFragments, Join: anthropicJoin, Tools: anthropicTools,
	// The tokens of the prompt for tools are the most that its page on tool use gives:
	// those of a request that lets Claude 4 choose.
	Framing:     budget.Framing{Call: 60, Result: 18, EstimatedCall: 60, EstimatedResult: 18, Tools: 346},
	Reasoning:   anthropicReasoning,
	Breakpoints: true, limits: &anthropicLimits, unanswered: anthropicUnanswered,
}

const (
	providerAnthropic    = "anthropic"
	longestAnthropicName = 128
	speakerAssistant     = "assistant"
	anthropicOpening     = `{"type":"text","text":"` + openingText + `"}`
)

func anthropicFragments(m Message) []Fragment {
	return anthropicLimits.noted(&m, anthropicCited(m, citing{}))
}

// anthropicCited renders a message for a request in which decided says which kinds of blocks have citations.
func anthropicCited(m Message, decided citing) []Fragment {
	c := &content{message: &m, citing: decided}
	switch m.Role {
	case eventlog.RoleSystem:
		return anthropicSystem(c)
	case eventlog.RoleAssistant:
		anthropicAssistant(c)
		out := c.fragments(speakerAssistant)
		if t := readServerTools(c); t != nil && len(out) > 0 {
			out[0].notes = &notes{serverTools: t}
		}
		return out
	default:
		for i, b := range m.Blocks {
			anthropicInput(c, i, b)
		}
		return c.fragments(speakerUser)
	}
}

func anthropicJoin(fragments []Fragment) []Encoded {
	system, rest := turns(anthropicLimits.within(settled(fragments), anthropicFragments), anthropicOpening)
	out := runs(system, func(string) (string, string) { return `{"system":[`, `]}` })
	for i := range out {
		out[i].System = true
	}
	rest = distinctUses(rest, nil)
	alikeCited(rest)
	across := answerAcross(rest)
	if last := len(rest) - 1; last >= 0 {
		rest[last] = anthropicLast(rest[last], across[last])
	}
	return append(out, runs(rest, func(speaker string) (string, string) {
		return `{"role":"` + speaker + `","content":[`, `]}`
	})...)
}

// anthropicLast trims the fragment at the end of a request: an assistant's message there may not end in whitespace.
func anthropicLast(fragment Fragment, across map[string]bool) Fragment {
	if fragment.Speaker != speakerAssistant || !mayEndInSpace(fragment.Blocks) {
		return fragment
	}
	c := &content{message: &fragment.Message, across: across}
	anthropicAssistant(c)
	if len(c.items) == 0 {
		return fragment
	}
	end := &c.items[len(c.items)-1]
	head := readAnthropic(string(end.json))
	trimmed := strings.TrimRightFunc(head.Text, space)
	if end.kind != said || head.Type != "text" || trimmed == head.Text {
		return fragment
	}
	end.json = anthropicTextItem(trimmed)
	c.converted(end.block, LeftOut, "whitespace at the end")
	fragment.JSON, fragment.Conversions = c.json(), besides(fragment.Conversions, c.conversions)
	return fragment
}

// mayEndInSpace reports whether the last item of an assistant's message may be a text that ends in whitespace. Calls are the
// last items wherever they are in the message, and a server tool's use or result is never such a text.
func mayEndInSpace(blocks []eventlog.Block) bool {
	if slices.ContainsFunc(blocks, func(b eventlog.Block) bool { _, call := b.(eventlog.ToolCall); return call }) {
		return false
	}
	for _, block := range slices.Backward(blocks) {
		switch b := block.(type) {
		case eventlog.Text:
			if !hollow(b.Text) {
				return strings.TrimRightFunc(b.Text, space) != b.Text
			}
		case eventlog.ProviderBlock:
			kind := readAnthropic(b.JSON).Type
			return kind == "text" || !anthropicAssistantTypes[kind]
		}
	}
	return false
}

// anthropicSystem makes the system prompt's blocks, which are texts. As user text, they also serve for other places.
func anthropicSystem(c *content) []Fragment {
	var texts []string
	for i, b := range c.message.Blocks {
		text, ok := systemText(c, i, b)
		if ok {
			texts = append(texts, text)
			c.add(said, i, anthropicTextItem(text))
		}
	}
	out := c.fragments("system")
	if len(out) > 0 {
		out[0].Elsewhere = anthropicTextItem(reminderText(strings.Join(texts, "\n")))
	}
	return out
}

// anthropicInput makes an item of what the user or a tool says.
func anthropicInput(c *content, i int, block eventlog.Block) {
	switch b := block.(type) {
	case eventlog.Text:
		if c.shown(i, b.Text) {
			c.add(said, i, anthropicTextItem(b.Text))
		}
	case eventlog.Media:
		c.add(said, i, anthropicMediaItem(c, i, b))
	case eventlog.ProviderBlock:
		c.add(said, i, anthropicNativeItem(c, i, b, readBlock(b, anthropicUserTypes)))
	case eventlog.ToolResult:
		if c.message.Role == eventlog.RoleTool {
			c.add(said, i, anthropicResult(c, i, b))
		} else {
			c.add(said, i, anthropicTextItem(c.describe(i, "tool result")))
		}
	case eventlog.ToolCall:
		c.add(said, i, anthropicTextItem(c.describe(i, "tool call "+brief(b.Name))))
	case eventlog.Thinking:
		c.converted(i, LeftOut, reasoningOf(b, c.message.Model))
	}
}

// anthropicAssistant makes the items of an assistant's message. The calls come last,
// as nothing but results may follow a call.
func anthropicAssistant(c *content) {
	var calls []item
	c.maker = provider.Maker(c.message.Model, c.message.Blocks)
	whole := anthropicReasons(c.maker, c.message.Blocks)
	if c.read == nil {
		c.read = anthropicBlocks(c.message.Blocks)
	}
	for i, block := range c.message.Blocks {
		if c.beside.hold(i, block, c.converted) {
			continue
		}
		before := len(c.items)
		switch b := block.(type) {
		case eventlog.Text:
			if c.shown(i, b.Text) {
				c.add(said, i, anthropicTextItem(b.Text))
			}
		case eventlog.Thinking:
			anthropicThinking(c, i, b, whole)
		case eventlog.ToolCall:
			calls = append(calls, item{called, i, anthropicCall(c, i, b)})
		case eventlog.ProviderBlock:
			c.add(said, i, anthropicServerItem(c, i, b, c.read[i]))
		case eventlog.Media:
			c.add(said, i, anthropicTextItem(c.describe(i, describeMedia(b))))
		case eventlog.ToolResult:
			c.add(said, i, anthropicTextItem(c.describe(i, "tool result")))
		}
		if len(c.items) > before && len(calls) > 0 {
			c.converted(i, Moved, "what stood behind a call")
		}
	}
	c.beside.leave(c.converted)
	c.items = append(c.items, calls...)
	c.leaveThoughts()
	if c.message.ReturnReasoning && len(c.items) > 0 && !slices.ContainsFunc(c.items, func(i item) bool { return i.kind == thought }) {
		c.items = slices.Insert(c.items, 0, item{thought, 0, anthropicThought(noReasoning, "")})
	}
}

func anthropicTextItem(text string) []byte {
	o := begin(len(text))
	o.always("type", "text")
	o.always("text", text)
	return append(o.dst, '}')
}
