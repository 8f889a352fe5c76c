package assemble

import (
	"context"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// Project assembles events that are in no store, by the rules of AppendEvents,
// and keeps nothing. It is the first assembly of a session that holds just them.
func (e *Engine) Project(_ context.Context, events []eventlog.Event, req Request) (*Context, error) {
	if err := checkPolicy(req.Policy); err != nil {
		return nil, err
	}
	b, gauge, err := e.resolve(req.Budget)
	if err != nil {
		return nil, err
	}
	_, admitted, err := eventlog.Head{}.Admit(events)
	if err != nil {
		return nil, err
	}
	conv := reduce.NewConversation(gauge)
	for _, event := range admitted {
		conv.Append(event)
	}
	p, err := run(conv, req.Policy.Reduction, b, reduce.State{})
	if err != nil {
		return nil, err
	}
	s := &session{}
	s.reset()
	out, _, err := build(s, p, b, req, e.newRecord(p, b, req, reduce.State{}))
	return out, err
}
