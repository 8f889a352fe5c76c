package reduce_test

import (
	eventlog "github.com/contextd/contextd/internal/log"
)

// place is a block of the log.
type place struct {
	seq   eventlog.Seq
	block int
}

// record is the log as the tests know it, beside the conversation.
type record struct {
	head   eventlog.Head
	events []eventlog.Event
	// answers leads from each call to its result.
	answers map[place]place
	open    map[string]place
	// firstUser is the first user message, humans are those that no runtime put in.
	firstUser eventlog.Seq
	humans    []eventlog.Seq
	pinned    map[eventlog.Seq]bool
}

func newRecord() *record {
	return &record{answers: map[place]place{}, open: map[string]place{}, pinned: map[eventlog.Seq]bool{}}
}

// append admits events and returns them with their seqs and turns.
func (r *record) append(events ...eventlog.Event) ([]eventlog.Event, error) {
	head, admitted, err := r.head.Admit(events)
	if err != nil {
		return nil, err
	}
	r.head = head
	r.events = append(r.events, admitted...)
	for _, e := range admitted {
		m, ok := e.Body.(*eventlog.Message)
		if !ok {
			continue
		}
		r.pinned[e.Seq] = m.Pinned
		said := false
		for i, b := range m.Blocks {
			switch b := b.(type) {
			case eventlog.ToolCall:
				r.open[b.CallID] = place{e.Seq, i}
			case eventlog.ToolResult:
				r.answers[r.open[b.CallID]] = place{e.Seq, i}
				delete(r.open, b.CallID)
			default:
				said = true
			}
		}
		if m.Role != eventlog.RoleUser || !said {
			continue
		}
		if r.firstUser == 0 {
			r.firstUser = e.Seq
		}
		if e.Labels["harness.injected"] != "true" {
			r.humans = append(r.humans, e.Seq)
		}
	}
	return admitted, nil
}

// block is a block as it is in the log.
func (r *record) block(p place) eventlog.Block {
	return r.events[p.seq-1].Body.(*eventlog.Message).Blocks[p.block]
}

// blocks lists the places of all blocks in messages.
func (r *record) blocks() []place {
	var all []place
	for _, e := range r.events {
		if m, ok := e.Body.(*eventlog.Message); ok {
			for i := range m.Blocks {
				all = append(all, place{e.Seq, i})
			}
		}
	}
	return all
}
