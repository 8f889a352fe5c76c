package chat

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// folded is a message that holds what is several messages for a provider: several replies with the results of their
// calls, as the AI SDK keeps them for its user interface, or several parts of a request, as Pydantic AI keeps them.
type folded struct {
	Role   transcript.Word                    `json:"role"`
	Author jsontext.Value                     `json:"author"`
	Kind   transcript.Word                    `json:"kind"`
	Parts  transcript.Maybe[[]jsontext.Value] `json:"parts"`

	// Of the AI SDK. Older versions have no parts.
	Content     transcript.Word                    `json:"content"`
	Reasoning   transcript.Word                    `json:"reasoning"`
	Invocations transcript.Maybe[[]jsontext.Value] `json:"toolInvocations"`
	CreatedAt   jsontext.Value                     `json:"createdAt"`

	pydanticMessage
	printed
	smolStep
}

// Only elements with one of these marks are decoded twice.
var marksOfFolded = [][]byte{[]byte(`"parts"`), []byte(`"toolInvocations"`), []byte(`"subtype"`), []byte(`"thread.`), []byte(`"turn.`), []byte(`"item.`), []byte(`"author"`), []byte(`"task"`), []byte(`"plan"`), []byte(`"system_prompt"`), []byte(`"step_number"`)}

// foldedIn recognises such messages: in a list, one a line, or in an object.
func foldedIn(p transcript.Probe) bool {
	if p.Is("type", "item.completed", "item.started") && p.Has("type", "item.id", "item.type") || p.Is("type", "thread.started") && p.Has("type", "thread_id") {
		return true
	}
	for _, at := range []string{"", "[].", inMessages + "[].", "[]." + inMessages + "[]."} {
		if p.Has(at+"role", at+"parts[].type") || p.Has(at+"kind", at+"parts[].part_kind") {
			return true
		}
	}
	return false
}

// unfold returns the messages of which an element consists, in the form of a provider's; most are one as they are.
func (c *conversation) unfold(raw jsontext.Value) []jsontext.Value {
	var m folded
	if raw[0] != '{' || !slices.ContainsFunc(marksOfFolded, func(mark []byte) bool { return bytes.Contains(raw, mark) }) || transcript.Decode(raw, &m) != nil {
		return []jsontext.Value{raw}
	}
	var all []jsontext.Value
	switch {
	case m.Role == "" && len(m.Author) > 0 && m.Author[0] == '{':
		return c.chatGPT(raw)
	case m.Role == "" && (m.Kind == "request" || m.Kind == "response"):
		all = c.pydantic(&m)
	case m.Role == "user" || m.Role == "assistant" || m.Role == "system":
		all = c.interfaceMessage(&m)
	case m.Role == "":
		if all, ok := c.printedLine(&m.printed); ok {
			return all
		}
		if m.Type == "" {
			all = m.smolStep.messages()
		}
	}
	if len(all) == 0 {
		return []jsontext.Value{raw}
	}
	return all
}

// uiPart is a part of a message in the AI SDK's form for user interfaces.
type uiPart struct {
	Type      transcript.Word `json:"type"`
	Text      transcript.Word `json:"text"`
	Reasoning transcript.Word `json:"reasoning"`
	URL       transcript.Word `json:"url"`
	Details   transcript.Maybe[[]struct {
		Signature transcript.Word `json:"signature"`
	}] `json:"details"`
	Provider transcript.Maybe[struct {
		Anthropic struct {
			Signature transcript.Word `json:"signature"`
			Redacted  transcript.Word `json:"redactedData"`
		} `json:"anthropic"`
		OpenAI struct {
			ItemID    transcript.Word `json:"itemId"`
			Encrypted transcript.Word `json:"reasoningEncryptedContent"`
		} `json:"openai"`
	}] `json:"providerMetadata"`
	Invocation transcript.Maybe[*uiCall] `json:"toolInvocation"`
	uiCall
}

// uiCall is a call of a tool with what became of it.
type uiCall struct {
	ID     transcript.Word `json:"toolCallId"`
	Name   transcript.Word `json:"toolName"`
	State  transcript.Word `json:"state"`
	Args   jsontext.Value  `json:"args"` // in older versions
	Input  jsontext.Value  `json:"input"`
	Result jsontext.Value  `json:"result"` // in older versions
	Output jsontext.Value  `json:"output"`
	Error  jsontext.Value  `json:"errorText"`
}

// call returns the call that a part is; nil if it is none.
func (p *uiPart) call() *uiCall {
	if p.Type == "tool-invocation" && p.Invocation.Value != nil {
		return p.Invocation.Value
	}
	name, ok := strings.CutPrefix(string(p.Type), "tool-")
	if !ok && p.Type != "dynamic-tool" || p.ID == "" {
		return nil
	}
	p.Name = cmp.Or(p.Name, transcript.Word(name))
	return &p.uiCall
}

// thought is a reasoning in a provider's form.
func (p *uiPart) thought() jsontext.Value {
	text, by := string(cmp.Or(p.Text, p.Reasoning)), p.Provider.Value
	signature := by.Anthropic.Signature
	for _, d := range p.Details.Value {
		signature = cmp.Or(signature, d.Signature)
	}
	return sealedThought(text, string(signature), string(by.Anthropic.Redacted), string(by.OpenAI.Encrypted), string(by.OpenAI.ItemID))
}

// sealedThought is a thinking in the form of the provider that sealed it: Anthropic by a signature or as redacted data,
// OpenAI by the encrypted content of an item with an id.
func sealedThought(text, signature, redacted, encrypted, id string) jsontext.Value {
	switch {
	case redacted != "":
		return transcript.Object("type", "redacted_thinking", "data", redacted)
	case encrypted != "":
		return transcript.Object("type", "reasoning", "text", text, "encrypted_content", encrypted, "id", id)
	}
	return transcript.Object("type", "thinking", "thinking", text, "signature", signature)
}

// interfaceMessage splits a message of a user interface into replies, each with the results of its calls after it; nil
// if it is in another form. A part that is no call begins the next reply if calls come before it.
func (c *conversation) interfaceMessage(m *folded) (all []jsontext.Value) {
	parts := m.Parts.Value
	if len(parts) == 0 && len(m.Invocations.Value) > 0 {
		if m.Reasoning != "" {
			parts = append(parts, transcript.Object("type", "reasoning", "text", string(m.Reasoning)))
		}
		parts = append(parts, transcript.Object("type", "text", "text", string(m.Content)))
		for _, call := range m.Invocations.Value {
			parts = append(parts, transcript.Object("type", "tool-invocation", "toolInvocation", call))
		}
	}
	var said, results []jsontext.Value
	calls := 0
	flush := func() {
		for _, one := range []struct {
			role   string
			blocks []jsontext.Value
		}{{string(m.Role), said}, {"user", results}} {
			if len(one.blocks) > 0 {
				all = append(all, transcript.Object("role", one.role, "content", transcript.List(one.blocks...), "timestamp", orNull(m.CreatedAt)))
			}
		}
		said, results, calls = nil, nil, 0
	}
	for _, raw := range parts {
		var p uiPart
		if transcript.Decode(raw, &p) != nil || p.Type == "" {
			return nil
		}
		call := p.call()
		if call == nil && calls > 0 {
			flush()
		}
		switch {
		case call != nil:
			calls++
			said = append(said, transcript.Object("type", "tool_use", "id", string(call.ID), "name", string(call.Name), "input", orEmpty(either(call.Input, call.Args))))
			if answer := call.answer(); answer != nil {
				results = append(results, answer)
			}
		case p.Type == "text":
			said = append(said, raw)
		case p.Type == "reasoning":
			said = append(said, p.thought())
		case p.Type == "file" && p.URL != "":
			said = append(said, transcript.Object("type", "image_url", "image_url", string(p.URL)))
		case p.Type != "step-start":
			c.out.Skip("part " + string(p.Type)) // for the user's eyes, such as a source
		}
	}
	flush()
	return all
}

// answer is the result of a call; nil if there is none yet.
func (c *uiCall) answer() jsontext.Value {
	done := strings.HasPrefix(string(c.State), "output-")
	if !done && c.State != "result" {
		return nil
	}
	return result(string(c.ID), either(c.Output, c.Result), c.Error, done && c.State != "output-available")
}
