package log

import (
	"fmt"
	"slices"
)

// MaxOpenCalls is the most unanswered tool calls that a log remembers. The oldest are forgotten first; a result for a
// forgotten call is refused.
const MaxOpenCalls = 1024

// OpenCall is a tool call that has no result yet.
type OpenCall struct {
	CallID  string
	Seq     Seq    // of the message that made the call
	GroupID string // of that message; may be empty
}

// Head is what a log must know of its events to admit the next batch. The zero value is the head of an empty log.
// Admit returns a new head and does not change the old one.
type Head struct {
	Seq   Seq
	Turns uint32
	// LastGroup is the group_id of the newest assistant message. A further part of that message has the same
	// group_id, and does not begin a turn.
	LastGroup string
	OpenCalls []OpenCall // oldest first
}

// HeadChange is the change that one event makes to a head. A log keeps this with each event, not the head after it: a
// list of open calls with each event would make the log grow with the square of its length.
type HeadChange struct {
	Turns     uint32 // after the event
	LastGroup string // after the event
	// Closed are the ids of the calls that were open before the event and are not any more: they were answered,
	// forgotten, or their id was used again.
	Closed []string
	// Opened are the calls of the event's message, in order.
	Opened []OpenCall
}

// Apply moves the head past the event at seq. It changes OpenCalls in place, so copies of the head must not share
// them: see Clone.
func (h *Head) Apply(seq Seq, c HeadChange) {
	h.Seq, h.Turns, h.LastGroup = seq, c.Turns, c.LastGroup
	if len(c.Closed) > 0 {
		h.OpenCalls = slices.DeleteFunc(h.OpenCalls, func(o OpenCall) bool { return slices.Contains(c.Closed, o.CallID) })
	}
	h.OpenCalls = append(h.OpenCalls, c.Opened...)
}

// Clone returns a copy that shares nothing with the head.
func (h Head) Clone() Head {
	h.OpenCalls = slices.Clone(h.OpenCalls)
	return h
}

// Admit returns the head after the events, and copies of the events with their Seq and Turn. An *InvalidError names
// the first wrong field, and nothing is admitted. The events must have no duplicates: PreparedBatch removes those
// first.
//
// The rules:
//   - A message has a role, at least one block, and at most MaxOpenCalls calls.
//   - Tool calls are in assistant messages, and results in tool or user messages. A tool message has only results.
//   - A result answers an open call before it.
//   - A call_id may be used again after its call was answered, or in a later message, but not twice in one message or
//     group.
//   - Text is UTF-8.
func (h Head) Admit(events []Event) (Head, []Event, error) {
	next := h.Clone()
	admitted := make([]Event, len(events))
	for i, e := range events {
		err := validateEvent(e)
		if err == nil {
			admitted[i], _, err = next.place(e)
		}
		if err != nil {
			return h, nil, err.in("events[%d]", i)
		}
	}
	return next, admitted, nil
}

// place gives an event that passed validateEvent its Seq and Turn, and moves the head past it, in place. After an
// error the head is unusable. The paths in its errors are relative to the event.
func (h *Head) place(e Event) (Event, HeadChange, *InvalidError) {
	h.Seq++
	e.Seq = h.Seq
	var c HeadChange
	if m, ok := e.Body.(*Message); ok {
		if err := h.placeMessage(m, e.Seq, &c); err != nil {
			return e, c, err.in("message")
		}
	}
	c.Turns, c.LastGroup = h.Turns, h.LastGroup
	e.Turn = h.Turns
	return e, c, nil
}

func (h *Head) placeMessage(m *Message, seq Seq, c *HeadChange) *InvalidError {
	if m.Role == RoleAssistant {
		if m.GroupID == "" || m.GroupID != h.LastGroup {
			h.Turns++
		}
		h.LastGroup = m.GroupID
	}
	for i, b := range m.Blocks {
		var err *InvalidError
		switch b := b.(type) {
		case ToolCall:
			err = h.openCall(m, b, seq, c)
		case ToolResult:
			err = h.answerCall(b, c)
		}
		if err != nil {
			return err.in("blocks[%d]", i)
		}
	}
	for len(h.OpenCalls) > MaxOpenCalls {
		h.closeCall(0, c)
	}
	return nil
}

// closeCall removes a call from the open ones.
func (h *Head) closeCall(at int, c *HeadChange) {
	c.Closed = append(c.Closed, h.OpenCalls[at].CallID)
	h.OpenCalls = slices.Delete(h.OpenCalls, at, at+1)
}

func (h *Head) openCall(m *Message, call ToolCall, seq Seq, c *HeadChange) *InvalidError {
	at := h.findOpen(call.CallID)
	if at >= 0 {
		o := h.OpenCalls[at]
		if o.Seq == seq || (o.GroupID != "" && o.GroupID == m.GroupID) {
			return &InvalidError{"tool_call.call_id", fmt.Sprintf("%q is used twice in one message", call.CallID)}
		}
		// The earlier call was interrupted: no result can answer it any more.
		h.closeCall(at, c)
	}
	opened := OpenCall{CallID: call.CallID, Seq: seq, GroupID: m.GroupID}
	h.OpenCalls, c.Opened = append(h.OpenCalls, opened), append(c.Opened, opened)
	return nil
}

func (h *Head) answerCall(r ToolResult, c *HeadChange) *InvalidError {
	at := h.findOpen(r.CallID)
	if at < 0 {
		return &InvalidError{"tool_result.call_id", fmt.Sprintf("%q answers no open tool call before it", r.CallID)}
	}
	h.closeCall(at, c)
	return nil
}

func (h *Head) findOpen(callID string) int {
	return slices.IndexFunc(h.OpenCalls, func(o OpenCall) bool { return o.CallID == callID })
}
