package log

import (
	"fmt"
	"slices"
)

// MaxOpenCalls bounds how many unanswered tool calls a log remembers. The oldest
// are forgotten first; a result for a forgotten call is refused.
const MaxOpenCalls = 1024

// OpenCall is a tool call that has no result yet.
type OpenCall struct {
	CallID  string
	Seq     Seq    // of the message that made the call
	GroupID string // of that message; may be empty
}

// Head is what a log must remember of its past to admit the next batch. The
// zero value is the head of an empty log. A Head is a value: Admit returns a new
// one and leaves the old one as it was.
type Head struct {
	Seq   Seq
	Turns uint32
	// LastGroup is the group_id of the newest assistant message: a further part
	// of it does not begin a model call.
	LastGroup string
	OpenCalls []OpenCall // oldest first
}

// Admit gives the events their Seq and Turn and returns the head behind them, or
// an *InvalidError that names the first field at fault; then nothing is admitted.
// The events must hold no duplicates: stores sort those out first. The slice is
// not changed; the admitted events are returned in a new one.
//
// The rules: a message has a role and at least one block; tool calls stand in
// assistant messages, and results in tool or user messages; a tool message holds
// results alone; a result answers an open call that stands before it; a call_id
// may be used again once it is answered, or in a later message, but not twice
// within one message or group.
func (h Head) Admit(events []Event) (Head, []Event, error) {
	next := h
	next.OpenCalls = slices.Clone(h.OpenCalls)
	admitted := make([]Event, len(events))
	for i, e := range events {
		e.Seq = next.Seq + 1
		if m, ok := e.Body.(*Message); ok {
			if err := next.admitMessage(m, e.Seq); err != nil {
				err.Field = fmt.Sprintf("events[%d].%s", i, err.Field)
				return h, nil, err
			}
		} else if err := validateBody(e.Body); err != nil {
			err.Field = fmt.Sprintf("events[%d].%s", i, err.Field)
			return h, nil, err
		}
		next.Seq = e.Seq
		e.Turn = next.Turns
		admitted[i] = e
	}
	if extra := len(next.OpenCalls) - MaxOpenCalls; extra > 0 {
		next.OpenCalls = slices.Delete(next.OpenCalls, 0, extra)
	}
	return next, admitted, nil
}

func validateBody(b Body) *InvalidError {
	switch b := b.(type) {
	case *Reminder:
		if b == nil || b.Body == "" {
			return &InvalidError{"reminder.body", "must not be empty"}
		}
	case *Compaction, *Custom:
	default:
		return &InvalidError{"kind", "must be set"}
	}
	return nil
}

func (h *Head) admitMessage(m *Message, seq Seq) *InvalidError {
	if m.Role == RoleUnspecified || m.Role > RoleTool {
		return &InvalidError{"message.role", "must be system, user, assistant or tool"}
	}
	if len(m.Blocks) == 0 {
		return &InvalidError{"message.blocks", "must not be empty"}
	}
	if m.Role == RoleAssistant {
		if m.GroupID == "" || m.GroupID != h.LastGroup {
			h.Turns++
		}
		h.LastGroup = m.GroupID
	}
	for i, b := range m.Blocks {
		if err := h.admitBlock(m, b, seq); err != nil {
			err.Field = fmt.Sprintf("message.blocks[%d].%s", i, err.Field)
			return err
		}
	}
	return nil
}

func (h *Head) admitBlock(m *Message, b Block, seq Seq) *InvalidError {
	if _, isResult := b.(ToolResult); m.Role == RoleTool && !isResult {
		return &InvalidError{"tool_result", "a tool message holds tool results alone"}
	}
	switch b := b.(type) {
	case ToolCall:
		return h.openCall(m, b, seq)
	case ToolResult:
		return h.answerCall(m, b)
	case nil:
		return &InvalidError{"kind", "must be set"}
	}
	return nil
}

func (h *Head) openCall(m *Message, c ToolCall, seq Seq) *InvalidError {
	if m.Role != RoleAssistant {
		return &InvalidError{"tool_call", "tool calls stand in assistant messages"}
	}
	if c.CallID == "" {
		return &InvalidError{"tool_call.call_id", "must not be empty"}
	}
	if c.Name == "" {
		return &InvalidError{"tool_call.name", "must not be empty"}
	}
	at := h.findOpen(c.CallID)
	if at >= 0 {
		o := h.OpenCalls[at]
		if o.Seq == seq || (o.GroupID != "" && o.GroupID == m.GroupID) {
			return &InvalidError{"tool_call.call_id", fmt.Sprintf("%q stands twice in one message", c.CallID)}
		}
		// The earlier call was interrupted: nothing can answer it any more.
		h.OpenCalls = slices.Delete(h.OpenCalls, at, at+1)
	}
	h.OpenCalls = append(h.OpenCalls, OpenCall{CallID: c.CallID, Seq: seq, GroupID: m.GroupID})
	return nil
}

func (h *Head) answerCall(m *Message, r ToolResult) *InvalidError {
	if m.Role != RoleTool && m.Role != RoleUser {
		return &InvalidError{"tool_result", "tool results stand in tool or user messages"}
	}
	if r.CallID == "" {
		return &InvalidError{"tool_result.call_id", "must not be empty"}
	}
	for i, c := range r.Content {
		switch c.(type) {
		case Text, Media, ProviderBlock:
		default:
			return &InvalidError{fmt.Sprintf("tool_result.content[%d]", i), "holds text, media and provider blocks only"}
		}
	}
	at := h.findOpen(r.CallID)
	if at < 0 {
		return &InvalidError{"tool_result.call_id", fmt.Sprintf("%q answers no open tool call before it", r.CallID)}
	}
	h.OpenCalls = slices.Delete(h.OpenCalls, at, at+1)
	return nil
}

func (h *Head) findOpen(callID string) int {
	return slices.IndexFunc(h.OpenCalls, func(o OpenCall) bool { return o.CallID == callID })
}
