package assemble

import (
	"context"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/render"
)

// RecordCall stores a model call, durable on return, and returns the calibration of its model from now on. For a call
// with the key of an earlier one it returns the earlier answer and stores nothing. *eventlog.NotFoundError if there
// is no such session or projection, *records.KeyConflictError if the key belongs to a different call.
func (e *Engine) RecordCall(ctx context.Context, c records.Call) (learnt budget.Calibration, repeated bool, err error) {
	s, release, err := e.sessions.acquire(ctx, c.SessionID)
	if err != nil {
		return budget.Calibration{}, false, err
	}
	defer release()
	info, err := s.look(ctx, e.store)
	if err != nil {
		return budget.Calibration{}, false, err
	}
	if err := s.index(ctx, e.store); err != nil {
		return budget.Calibration{}, false, err
	}
	if first, repeated, err := c.Repeats(ctx, e.store); repeated || err != nil {
		return first.Calibration, repeated, err
	}
	learnt, err = records.Report(ctx, e.store, s.of, info.Head, c, e.opts.Clock())
	return learnt, false, err
}

// CallID returns the log's id of a tool call from the id that a provider's format gave it; ok is false if
// the log has no such call. The log is read with the gauge of tokenizer; any that the daemon has will do.
func (e *Engine) CallID(ctx context.Context, sessionID, tokenizer, rendered string) (id string, ok bool, err error) {
	gauge, err := e.opts.Gauges(tokenizer)
	if err != nil {
		return "", false, err
	}
	s, release, err := e.sessions.acquire(ctx, sessionID)
	if err != nil {
		return "", false, err
	}
	defer release()
	conv, err := s.conversation(ctx, e.store, gauge, nil, projection.Options{}, "")
	if err != nil {
		return "", false, err
	}
	groups := conv.Groups()
	for i := len(groups) - 1; i >= 0; i-- {
		for _, c := range groups[i].Calls {
			if render.WireCallID(c.ID, c.Repeat) == rendered {
				return c.ID, true, nil
			}
		}
	}
	return "", false, nil
}
