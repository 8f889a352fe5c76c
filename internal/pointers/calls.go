package pointers

import (
	"context"

	eventlog "github.com/contextd/contextd/internal/log"
)

// calls are those in a run of events that were read, each call id's oldest first: results that are far from
// their calls are mostly near each other.
type calls struct {
	first, last eventlog.Seq // no event was read where first is 0
	named       map[string][]namedCall
}

type namedCall struct {
	seq  eventlog.Seq
	tool string
}

// farEvents is how many events between two results are read for the second of them rather than
// those before it once more, beside as many as were read by then.
const farEvents = 256

// toolOf is the tool of the newest call with an id that is not after an event.
func (r *Reader) toolOf(ctx context.Context, callID string, to eventlog.Seq) (tool string, err error) {
	c := &r.calls
	if far := c.last - c.first + farEvents; c.first == 0 || to > c.last+far || to+far < c.first {
		*c = calls{first: to + 1, last: to, named: map[string][]namedCall{}}
	}
	if to > c.last {
		later := map[string][]namedCall{}
		if err := r.readCalls(ctx, c.last+1, to, later); err != nil {
			return "", err
		}
		for id, all := range later {
			c.named[id] = append(c.named[id], all...)
		}
		c.last = to
	}
	for n := eventlog.Seq(8); ; n *= 2 {
		all := c.named[callID]
		for i := len(all) - 1; i >= 0; i-- {
			if all[i].seq <= to {
				return all[i].tool, nil
			}
		}
		if c.first <= 1 {
			return "", nil
		}
		from := c.first - min(n, c.first-1)
		earlier := map[string][]namedCall{}
		if err := r.readCalls(ctx, from, c.first-1, earlier); err != nil {
			return "", err
		}
		for id, all := range earlier {
			c.named[id] = append(all, c.named[id]...)
		}
		c.first = from
	}
}

// readCalls adds the calls in a run of events.
func (r *Reader) readCalls(ctx context.Context, from, to eventlog.Seq, into map[string][]namedCall) error {
	for event, err := range r.log.Read(ctx, r.sessionID, from, to) {
		if err != nil {
			return err
		}
		for _, b := range Blocks(event) {
			if call, ok := b.(eventlog.ToolCall); ok {
				into[call.CallID] = append(into[call.CallID], namedCall{event.Seq, call.Name})
			}
		}
	}
	return nil
}
