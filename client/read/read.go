// Package read makes events of what providers' APIs give and take: responses of models, and
// messages as requests have them.
package read

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// Response is the event of a model's response, from the body as it came: of Anthropic's
// Messages, OpenAI's Chat Completions or Responses, or Gemini's API. The event's id is the
// response's, so that one that is appended twice is in the log once. Arguments of calls keep
// their bytes. A response that says nothing is no message, and becomes a custom event.
func Response(body []byte) (*contextdv1.Event, error) {
	body = bytes.TrimPrefix(body, byteOrderMark)
	if !json.Valid(body) {
		return nil, errors.New("the response is no JSON")
	}
	said, err := response(value(body))
	if err != nil {
		return nil, err
	}
	if m := said.GetMessage(); len(m.GetBlocks()) == 0 {
		var about bytes.Buffer
		encoder := json.NewEncoder(&about)
		encoder.SetEscapeHTML(false) // the clients in other languages write the same bytes
		if err := encoder.Encode(map[string]string{"id": said.GetEventId(), "model": m.GetModel()}); err != nil {
			return nil, err
		}
		said = &contextdv1.Event{EventId: said.GetEventId(), Kind: &contextdv1.Event_Custom{
			Custom: &contextdv1.CustomEvent{Type: "empty_response", Json: bytes.TrimSpace(about.Bytes())},
		}}
	}
	return said, nil
}

func response(v value) (*contextdv1.Event, error) {
	kind := v.get("object").text()
	switch outer := v.members(); {
	case outer["output"] != nil && (kind == "" || kind == "response"):
		return openaiResponse(v)
	case outer["choices"] != nil:
		return chatResponse(v)
	case outer["candidates"] != nil, outer["promptFeedback"] != nil:
		return geminiResponse(v)
	case v.get("type").text() == "message" && v.get("role").text() == "assistant":
		blocks, err := anthropicContent(v, "content")
		return assistant(v.get("model").text(), v.get("id").text(), blocks), err
	default:
		return nil, errors.New("the response is none of Anthropic's, OpenAI's or Gemini's")
	}
}

// Messages are the events of messages in a provider's format: a message, a list of them, or
// messages one after another, as an assembled context is written. An object that has only the
// system prompt, which Anthropic's and Gemini's formats have outside of the messages, is one too.
// A message whose content is empty has no event. One that cannot be read is an error: nothing of
// what was said is left out without a word.
func Messages(format contextdv1.Format, data []byte) ([]*contextdv1.Event, error) {
	read, ok := formats[format]
	if !ok {
		return nil, fmt.Errorf("format: messages of %s are not read", format)
	}
	var values []value
	decoder := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, byteOrderMark)))
	for {
		var v value
		err := decoder.Decode((*json.RawMessage)(&v))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", len(values), err)
		}
		if v.isList() {
			values = append(values, v.elements()...)
		} else {
			values = append(values, v)
		}
	}
	var out []*contextdv1.Event
	for i, v := range values {
		err := noMessage(v)
		var events []*contextdv1.Event
		if err == nil {
			events, err = read(v)
		}
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		for _, e := range events {
			out = joined(format, out, e)
		}
	}
	return out, nil
}

// byteOrderMark is what some editors write before a text in UTF-8.
var byteOrderMark = []byte("\xef\xbb\xbf")

// noMessage says of a value that it is a whole request, or nothing that could be a message.
func noMessage(v value) error {
	if !v.isObject() {
		return errors.New("must be an object")
	}
	if v.get("role") != nil || v.get("type") != nil {
		return nil
	}
	for _, list := range []string{"messages", "contents", "input"} {
		if v.get(list).isList() {
			return fmt.Errorf("is a whole request; give the list in its %q instead, and before it a system prompt that is not in the list", list)
		}
	}
	return nil
}

// withContent returns an error if a message's content is neither a string nor a list of objects, and so would be lost.
// Null is empty; so is a message with a role and nothing else.
func withContent(v value, name string) error {
	members := v.members()
	content, ok := members[name]
	switch {
	case !ok && len(members) == 1 && members["role"] != nil:
		return nil
	case !ok:
		return fmt.Errorf("%s: must be set", name)
	case string(content) == "null" || content[0] == '"':
		return nil
	case content[0] == '[':
		return ofObjects(value(content), name)
	default:
		return fmt.Errorf("%s: must be a string or a list", name)
	}
}

// ofObjects returns an error if an element of a list is no object, and so no part of a message.
func ofObjects(list value, name string) error {
	for i, item := range list.elements() {
		if !item.isObject() {
			return fmt.Errorf("%s[%d]: must be an object", name, i)
		}
	}
	return nil
}

var formats = map[contextdv1.Format]func(value) ([]*contextdv1.Event, error){
	contextdv1.Format_FORMAT_ANTHROPIC:        anthropicMessage,
	contextdv1.Format_FORMAT_OPENAI_CHAT:      chatMessage,
	contextdv1.Format_FORMAT_OPENAI_RESPONSES: responsesItem,
	contextdv1.Format_FORMAT_GEMINI:           geminiContent,
}

// joined appends an event. Consecutive items of the model are merged into one message, because the Responses API has
// an item for each part of it.
func joined(format contextdv1.Format, out []*contextdv1.Event, e *contextdv1.Event) []*contextdv1.Event {
	m := e.GetMessage()
	if len(m.GetBlocks()) == 0 {
		return out
	}
	if format == contextdv1.Format_FORMAT_OPENAI_RESPONSES && m.GetRole() == contextdv1.Role_ROLE_ASSISTANT && len(out) > 0 {
		if last := out[len(out)-1].GetMessage(); last.GetRole() == contextdv1.Role_ROLE_ASSISTANT {
			last.Blocks = append(last.Blocks, m.GetBlocks()...)
			return out
		}
	}
	return append(out, e)
}

// byResult are the events of a user's message that may hold results, which come first.
func byResult(blocks []*contextdv1.Block) []*contextdv1.Event {
	var results, said []*contextdv1.Block
	for _, b := range blocks {
		if b.GetToolResult() != nil {
			results = append(results, b)
		} else {
			said = append(said, b)
		}
	}
	return []*contextdv1.Event{message(contextdv1.Role_ROLE_TOOL, results), message(contextdv1.Role_ROLE_USER, said)}
}

func message(role contextdv1.Role, blocks []*contextdv1.Block) *contextdv1.Event {
	return &contextdv1.Event{Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{Role: role, Blocks: blocks}}}
}

func assistant(model, id string, blocks []*contextdv1.Block) *contextdv1.Event {
	e := message(contextdv1.Role_ROLE_ASSISTANT, blocks)
	e.EventId, e.GetMessage().Model = id, model
	return e
}
