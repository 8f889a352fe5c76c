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
// The events must hold no duplicates: PreparedBatch sorts those out first. The
// slice is not changed; the admitted events are returned in a new one.
//
// The rules: a message has a role and at least one block; tool calls stand in
// assistant messages, and results in tool or user messages; a tool message holds
// results alone; a result answers an open call that stands before it; a call_id
// may be used again once it is answered, or in a later message, but not twice
// within one message or group; a message makes at most MaxOpenCalls calls; text
// is UTF-8.
func (h Head) Admit(events []Event) (Head, []Event, error) {
	next := h
	admitted := make([]Event, len(events))
	for i, e := range events {
		var err *InvalidError
		if next, admitted[i], err = next.admitEvent(e); err != nil {
			return h, nil, err.in("events[%d]", i)
		}
	}
	return next, admitted, nil
}

// admitEvent is Admit for one event. The fields of its errors start within the
// event.
func (h Head) admitEvent(e Event) (Head, Event, *InvalidError) {
	if err := validateEvent(e); err != nil {
		return h, e, err
	}
	return h.place(e)
}

// place admits an event that validateEvent has nothing against.
func (h Head) place(e Event) (Head, Event, *InvalidError) {
	next := h
	e.Seq = h.Seq + 1
	next.Seq = e.Seq
	if m, ok := e.Body.(*Message); ok {
		if err := next.placeMessage(m, e.Seq); err != nil {
			return h, e, err.in("message")
		}
	}
	e.Turn = next.Turns
	return next, e, nil
}

func (h *Head) placeMessage(m *Message, seq Seq) *InvalidError {
	if m.Role == RoleAssistant {
		if m.GroupID == "" || m.GroupID != h.LastGroup {
			h.Turns++
		}
		h.LastGroup = m.GroupID
	}
	if !slices.ContainsFunc(m.Blocks, isCallOrResult) {
		return nil
	}
	// The list is shared with the heads before this one.
	h.OpenCalls = slices.Clone(h.OpenCalls)
	for i, b := range m.Blocks {
		var err *InvalidError
		switch b := b.(type) {
		case ToolCall:
			err = h.openCall(m, b, seq)
		case ToolResult:
			err = h.answerCall(b)
		}
		if err != nil {
			return err.in("blocks[%d]", i)
		}
	}
	if extra := len(h.OpenCalls) - MaxOpenCalls; extra > 0 {
		h.OpenCalls = slices.Delete(h.OpenCalls, 0, extra)
	}
	return nil
}

func isCallOrResult(b Block) bool {
	switch b.(type) {
	case ToolCall, ToolResult:
		return true
	default:
		return false
	}
}

func (h *Head) openCall(m *Message, c ToolCall, seq Seq) *InvalidError {
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

func (h *Head) answerCall(r ToolResult) *InvalidError {
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
