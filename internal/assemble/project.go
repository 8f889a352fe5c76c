package assemble

import (
	"context"
	"fmt"
	"slices"

	"github.com/contextd/contextd/internal/decide"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
)

// Project assembles events that are in no store, and stores nothing. The events must satisfy the rules of
// AppendEvents. The result is the same as for the first assembly of a session whose log has just these events.
func (e *Engine) Project(ctx context.Context, events []eventlog.Event, req Request) (*Context, error) {
	if err := checkPolicy(req.Policy); err != nil {
		return nil, err
	}
	b, gauge, err := e.resolve(req.Budget)
	if err != nil {
		return nil, err
	}
	admission, err := admit(events)
	if err != nil {
		return nil, err
	}
	fresh := make([]eventlog.Event, len(admission.Fresh))
	for i := range admission.Fresh {
		fresh[i] = admission.Fresh[i].Event
	}
	req.Policy.Projection = req.Policy.Projection.WithScrubber(e.opts.Scrub)
	conv, err := ConversationOf(ctx, gauge, fresh, req.Policy.Projection)
	if err != nil {
		return nil, err
	}
	s := &session{room: DefaultCacheBytes}
	s.reset()
	in := decide.Inputs{Ctx: ctx, Conversation: conv, Reduction: e.reduction(req.Policy, b), Budget: b, Projection: req.Policy.Projection}
	in.Fingerprint = records.Fingerprint(in.Projection, in.Reduction, b)
	if in.Policy, err = s.projector(in.Projection.WithLive(conv), in.Reduction.Recall); err != nil {
		return nil, err
	}
	p, err := runFirst(&in)
	if err != nil {
		return nil, err
	}
	out, _, err := build(s, p, req, req.newRecord(in, p, e.opts.Clock()))
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	out.cacheHints(e.opts.Namespace)
	return out, nil
}

// admit gives events their positions in a log of their own. Events without an id get one that no client can
// use.
func admit(events []eventlog.Event) (eventlog.Admission, error) {
	if len(events) == 0 {
		return eventlog.Admission{}, nil
	}
	named := slices.Clone(events)
	for i := range named {
		if named[i].ID == "" {
			named[i].ID = fmt.Sprintf("\x00%d", i)
		}
	}
	batch, err := eventlog.Prepare(eventlog.Batch{Events: named})
	if err != nil {
		return eventlog.Admission{}, err
	}
	return batch.Admit(eventlog.Head{}, func(int) (eventlog.Known, bool, error) { return eventlog.Known{}, false, nil })
}
