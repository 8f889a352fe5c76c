package assemble

import (
	"context"
	"errors"

	"github.com/contextd/contextd/internal/decide"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
)

// Assemble renders the context of a session and records the projection, unless
// the request is a preview. The record is durable on return.
func (e *Engine) Assemble(ctx context.Context, req Request) (out *Context, err error) {
	// The first attempt shares the caller's OneCall, if there is one; each further one asks the store
	// again.
	for attempt := range recordAttempts {
		call := ctx
		if attempt > 0 {
			call = eventlog.OneCall(ctx)
		}
		var due *summarize.Proposal
		out, due, err = e.assemble(call, req)
		if due != nil {
			req.Wait(ctx, *due)
			req.Wait = nil
			out, _, err = e.assemble(eventlog.OneCall(ctx), req)
		}
		// On a conflict another process has recorded a context. The next attempt starts from its decisions.
		if _, lost := errors.AsType[*eventlog.ConflictError](err); !lost {
			break
		}
	}
	return out, err
}

// recordAttempts is how often Assemble tries to record a context, when other processes record one at the same head
// first.
const recordAttempts = 8

// assemble acquires the session and assembles its context. If the request waits for summaries and one is due first,
// only due is set.
func (e *Engine) assemble(ctx context.Context, req Request) (out *Context, due *summarize.Proposal, err error) {
	s, release, err := e.sessions.acquire(ctx, req.SessionID)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	if req.shadow != nil {
		s.pinned = req.shadow.Of
	}
	out, due, err = e.answerOrAttempt(ctx, s, req)
	if errors.Is(err, reduce.ErrIncomplete) {
		s.whole = true
		out, due, err = e.answerOrAttempt(ctx, s, req)
	}
	if out != nil && err == nil {
		s.handOver(ctx, out.Messages)
	}
	return out, due, err
}

// answerOrAttempt answers from the record of the idempotency key if there is one, or assembles the context.
func (e *Engine) answerOrAttempt(ctx context.Context, s *session, req Request) (out *Context, due *summarize.Proposal, err error) {
	in, earlier, err := e.gather(ctx, s, req)
	switch {
	case err != nil:
		return nil, nil, err
	case earlier != nil:
		out, err = e.repeat(ctx, s, req, *earlier)
		return out, nil, err
	default:
		return e.attempt(ctx, s, in, req)
	}
}

// attempt assembles and records a context. If a summary is due for which the request waits, it returns only that.
func (e *Engine) attempt(ctx context.Context, s *session, in decide.Inputs, req Request) (*Context, *summarize.Proposal, error) {
	p, err := in.Run()
	if err != nil {
		return nil, nil, err
	}
	if req.Wait != nil {
		if due := in.Due(p); due != nil {
			return nil, due, nil
		}
	}
	p, out, laid, err := e.answerBound(ctx, s, in, p, req)
	if err != nil {
		return nil, nil, err
	}
	if req.Preview {
		_, err := s.look(ctx, e.store)
		return out, nil, err
	}
	out.Collapsed = in.Forced(p)
	if err := e.record(ctx, s, p, out, laid, req.shadow); err != nil {
		return nil, nil, err
	}
	if req.shadow != nil { // no summaries are made for shadows
		return out, nil, nil
	}
	if out.Proposed, out.Pressure, err = e.nextSummary(ctx, s, in, p); err != nil {
		return nil, nil, err
	}
	return out, nil, nil
}
