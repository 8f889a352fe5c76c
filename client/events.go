package client

import (
	"strings"

	"github.com/contextd/contextd/client/read"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// System returns an event with the system prompt, or with a later message of the system.
func System(text string) *contextdv1.Event {
	return Message(contextdv1.Role_ROLE_SYSTEM, Text(text))
}

// User returns an event with a message of the user.
func User(text string) *contextdv1.Event {
	return Message(contextdv1.Role_ROLE_USER, Text(text))
}

// Assistant returns an event with a message of a model: texts, calls, reasoning. Without the model's
// name, contexts omit reasoning with a seal that two providers could have made.
func Assistant(model string, blocks ...*contextdv1.Block) *contextdv1.Event {
	e := Message(contextdv1.Role_ROLE_ASSISTANT, blocks...)
	e.GetMessage().Model = model
	return e
}

// Result returns an event with the result of one call. An empty text is a result without content. Of the call's
// id it takes what read.CallID does.
func Result(callID, text string, isError bool) *contextdv1.Event {
	r := &contextdv1.ToolResult{CallId: read.CallID(callID), IsError: isError}
	if text != "" {
		r.Content = []*contextdv1.Block{Text(text)}
	}
	return Message(contextdv1.Role_ROLE_TOOL, &contextdv1.Block{Kind: &contextdv1.Block_ToolResult{ToolResult: r}})
}

// Message returns an event with a message of any role.
func Message(role contextdv1.Role, blocks ...*contextdv1.Block) *contextdv1.Event {
	return &contextdv1.Event{Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{Role: role, Blocks: blocks}}}
}

// Text returns a block of text. Bytes that are not UTF-8 are replaced by U+FFFD.
func Text(text string) *contextdv1.Block {
	return &contextdv1.Block{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: strings.ToValidUTF8(text, "\uFFFD")}}}
}

// Call returns a block with a tool call. The arguments are the bytes that the model wrote, JSON or not. Of the
// id it takes what read.CallID does.
func Call(callID, name string, arguments []byte) *contextdv1.Block {
	return &contextdv1.Block{Kind: &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{
		CallId: read.CallID(callID), Name: name, ArgumentsJson: arguments,
	}}}
}
