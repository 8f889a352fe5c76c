package main

import (
	"fmt"
	"slices"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// humans are the first and the newest human message of a log: those with the user's role that the runtime did
// not inject. While there is none, first is the first injected message.
type humans struct {
	first, newest anchored
	spoke         bool
	// clipped is the newest message that was clipped where the rules allow it. It may then stay clipped.
	clipped uint64
}

// observe adds a message with the user's role that has content of its own.
func (h *humans) observe(seq uint64, e *contextdv1.Event) {
	injected := e.GetLabels()["harness.injected"] == "true"
	said := anchored{seq, e.GetMessage()}
	if h.first.seq == 0 || !injected && !h.spoke {
		h.first = said
	}
	if !injected {
		h.newest, h.spoke = said, true
	}
}

// check checks that both messages are there, and are only clipped where docs/policies.md allows it. It
// assumes that a token is at least a byte.
func (h *humans) check(a answer) error {
	target := a.header.GetBudget().GetTargetTokens()
	if h.first.seq > 0 {
		m, err := h.first.in(a.messages)
		if err != nil {
			return fmt.Errorf("first human words: %w", err)
		}
		if size := h.first.size(); m.GetOrigin() == contextdv1.Origin_ORIGIN_CLIPPED && size < target/2 {
			return fmt.Errorf("first human words: event %d is clipped and has %d bytes", h.first.seq, size)
		}
	}
	if h.newest.seq == 0 || h.newest.seq == h.first.seq {
		return nil
	}
	m, err := h.newest.in(a.messages)
	if err != nil {
		return fmt.Errorf("newest human words: %w", err)
	}
	if m.GetOrigin() != contextdv1.Origin_ORIGIN_CLIPPED || h.newest.seq == h.clipped {
		return nil
	}
	turns := slices.ContainsFunc(a.messages, func(m *contextdv1.RenderedMessage) bool {
		return m.GetMessage().GetRole() == contextdv1.Role_ROLE_ASSISTANT
	})
	if size := h.newest.size(); size < target/4 && turns {
		return fmt.Errorf("newest human words: event %d is clipped and has %d bytes", h.newest.seq, size)
	}
	h.clipped = h.newest.seq
	return nil
}

// size is the length of the message's texts in bytes.
func (want anchored) size() uint64 {
	n := 0
	for _, text := range texts(want.Message) {
		n += len(text)
	}
	return uint64(n)
}
