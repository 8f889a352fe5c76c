package client

import (
	"strings"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// System is the system prompt, or a later message of the system.
func System(text string) *contextdv1.Event {
	return Message(contextdv1.Role_ROLE_SYSTEM, Text(text))
}

// User is what the user says.
func User(text string) *contextdv1.Event {
	return Message(contextdv1.Role_ROLE_USER, Text(text))
}

// Assistant is what a model says: texts, calls, reasoning. Without the model's name, reasoning
// whose seal two providers could have made is left out of contexts.
func Assistant(model string, blocks ...*contextdv1.Block) *contextdv1.Event {
	e := Message(contextdv1.Role_ROLE_ASSISTANT, blocks...)
	e.GetMessage().Model = model
	return e
}

// Result is what a tool gave back for one call. An empty text is a result without content.
func Result(callID, text string, isError bool) *contextdv1.Event {
	r := &contextdv1.ToolResult{CallId: callID, IsError: isError}
	if text != "" {
		r.Content = []*contextdv1.Block{Text(text)}
	}
	return Message(contextdv1.Role_ROLE_TOOL, &contextdv1.Block{Kind: &contextdv1.Block_ToolResult{ToolResult: r}})
}

// Message is a message of any role.
func Message(role contextdv1.Role, blocks ...*contextdv1.Block) *contextdv1.Event {
	return &contextdv1.Event{Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{Role: role, Blocks: blocks}}}
}

// Text is a block of text. What is no UTF-8 in it is replaced by U+FFFD.
func Text(text string) *contextdv1.Block {
	return &contextdv1.Block{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: strings.ToValidUTF8(text, "\uFFFD")}}}
}

// Call is a tool call. The arguments are the bytes that the model wrote, JSON or not.
func Call(callID, name string, arguments []byte) *contextdv1.Block {
	return &contextdv1.Block{Kind: &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{
		CallId: callID, Name: name, ArgumentsJson: arguments,
	}}}
}
