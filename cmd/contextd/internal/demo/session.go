package demo

import (
	"bufio"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// bundled is a session that tools/record recorded.
//
//go:embed session.jsonl
var bundled []byte

// readSession reads JSON lines of contextd.v1.Event.
func readSession(r io.Reader) ([]*contextdv1.Event, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	var events []*contextdv1.Event
	for line := 1; ; line++ {
		text, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			e := &contextdv1.Event{}
			if err := protojson.Unmarshal(text, e); err != nil {
				return nil, fmt.Errorf("line %d: %w", line, err)
			}
			events = append(events, e)
		}
		if err != nil {
			break
		}
	}
	if len(events) == 0 {
		return nil, errors.New("it holds no events")
	}
	return events, nil
}

// step is what is appended between two model calls.
type step struct {
	events []*contextdv1.Event
	// user is what the user said in the step, if anything.
	user string
}

// split cuts a session into steps, each of which ends where a model call begins: before a run of assistant
// messages, or at the end. rest is the end of a session whose last message is the assistant's: no call
// follows it.
func split(events []*contextdv1.Event) (steps []step, rest []*contextdv1.Event) {
	from, wasAssistant := 0, false
	for i, e := range events {
		m := e.GetMessage()
		if m == nil {
			continue // other events do not affect calls
		}
		assistant := m.GetRole() == contextdv1.Role_ROLE_ASSISTANT
		if assistant && !wasAssistant && i > from {
			steps = append(steps, newStep(events[from:i]))
			from = i
		}
		wasAssistant = assistant
	}
	if wasAssistant {
		return steps, events[from:]
	}
	return append(steps, newStep(events[from:])), nil
}

func newStep(events []*contextdv1.Event) step {
	s := step{events: events}
	for _, e := range slices.Backward(events) {
		if e.GetMessage().GetRole() != contextdv1.Role_ROLE_USER {
			continue
		}
		for _, b := range e.GetMessage().GetBlocks() {
			if t := b.GetText().GetText(); t != "" {
				s.user = t
				return s
			}
		}
	}
	return s
}
