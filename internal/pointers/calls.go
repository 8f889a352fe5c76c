package pointers

import (
	"context"

	eventlog "github.com/contextd/contextd/internal/log"
)

// calls caches the calls in a range of events that were read, by call id, the oldest first. It is used for
// results that do not name their tool; such results are mostly near each other.
type calls struct {
	first, last eventlog.Seq // the range; first is 0 before anything is read
	named       map[string][]namedCall
}

type namedCall struct {
	seq  eventlog.Seq
	tool string
}

// farEvents bounds the gap that is read to extend the cached range to the next result. A result that is
// further away than this plus the length of the range starts a new range.
const farEvents = 256

// toolOf is the tool of the newest call with an id at event to or before; empty if there is none.
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
