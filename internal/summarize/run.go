package summarize

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/contextd/contextd/internal/ledger"
	eventlog "github.com/contextd/contextd/internal/log"
)

// maxAttempts is how often a span is tried while its failures may be temporary.
const maxAttempts = 3

// reasonBytes is the longest text of an error that is stored.
const reasonBytes = 400

// propose carries out one proposal. When it returns, the summary is stored, or the journal says why not, or the error
// is errElsewhere.
func (s *Scheduler) propose(ctx context.Context, p Proposal) (_ Summary, err error) {
	if p.Of, err = s.session(p); err != nil {
		return Summary{}, err
	}
	return s.leased(ctx, p)
}

// run carries out a proposal while this process holds its lease.
func (s *Scheduler) run(ctx context.Context, p Proposal) (Summary, error) {
	n, err := s.o.Registry.lookup(p.Summarizer)
	if err != nil {
		return Summary{}, err
	}
	defer n.breaker.report(s.o.Observer.BreakerChanged)
	t, stored, err := s.begin(ctx, p)
	var failed *FailedError
	if errors.As(err, &failed) {
		return Summary{}, n.backendError(err)
	}
	if stored.ID != "" || err != nil {
		return stored, err
	}
	if n.breaker.state().Health == Open {
		return Summary{}, n.backendError(&BreakerOpenError{n.name})
	}
	n.breaker.report(s.o.Observer.BreakerChanged)
	chain, err := s.chainAt(ctx, p)
	if err != nil {
		return Summary{}, err
	}
	m, err := s.o.Sessions.Material(ctx, p)
	if err != nil {
		if ctx.Err() == nil {
			s.unmade(p, reason(err))
		}
		return Summary{}, err
	}
	if len(m.Groups) == 0 {
		return Summary{}, &eventlog.InvalidError{Field: "to", Reason: fmt.Sprintf("events %d to %d hold nothing to summarise", p.From, p.To)}
	}
	t.Status = pending
	t.Attempts++
	if err := s.started(ctx, p, t); err != nil {
		return Summary{}, err
	}
	a := attempt{scheduler: s, summarizer: n, proposal: p, task: t, material: m, chain: chain, ctx: ctx}
	summary, err := a.write()
	if err != nil {
		return Summary{}, s.failed(ctx, p, t, err)
	}
	return summary, nil
}

// session returns the incarnation of the proposal's session.
func (s *Scheduler) session(p Proposal) (eventlog.Incarnation, error) {
	session, err := s.o.Store.Session(context.WithoutCancel(s.ctx), p.SessionID)
	if err == nil && p.Of != 0 && session.Incarnation != p.Of {
		err = eventlog.NoSession(p.SessionID)
	}
	if err == nil && session.Head < p.To {
		err = &eventlog.InvalidError{Field: "to", Reason: fmt.Sprintf("event %d does not exist; the log ends at %d", p.To, session.Head)}
	}
	return session.Incarnation, err
}

// chainAt returns the log's chain at the end of a proposal's span; nil if only this process writes to the store.
func (s *Scheduler) chainAt(ctx context.Context, p Proposal) ([]byte, error) {
	if s.o.Store.Capabilities().OneWriter {
		return nil, nil
	}
	return s.o.Store.ChainHead(ctx, p.SessionID, p.To)
}

// known returns a proposal's task, and its summary if there is one.
func (s *Scheduler) known(ctx context.Context, p Proposal) (task, Summary, error) {
	stored, ok, err := get(ctx, s.o.Store, p.SessionID, p.To, p.SummaryID())
	if err != nil {
		return task{}, Summary{}, err
	}
	if ok && !s.o.Store.Capabilities().OneWriter {
		// Another process may have made it, so the session here may not know of it yet.
		s.o.Sessions.Summarized(ctx, p.SessionID, stored)
	}
	t, err := getTask(ctx, s.o.Store, p)
	return t, stored, err
}

// begin returns the proposal's task if there should be an attempt. Otherwise it returns the stored summary, or the
// error because of which there is no further attempt.
func (s *Scheduler) begin(ctx context.Context, p Proposal) (task, Summary, error) {
	t, stored, err := s.known(ctx, p)
	if stored.ID != "" || err != nil {
		return t, stored, err
	}
	if t.Status == pending && t.Attempts >= maxAttempts {
		// A task that still runs in the store is from a process that ended during it.
		t.Status = failed
		if t.Reason == "" {
			t.Reason = "interrupted"
		}
		if err := s.put(p, t); err != nil {
			return task{}, Summary{}, err
		}
	}
	if t.Status == failed {
		return task{}, Summary{}, t.failure(p)
	}
	return t, Summary{}, nil
}

// failed records the end of an attempt and returns why it ended.
func (s *Scheduler) failed(ctx context.Context, p Proposal, t task, err error) error {
	var open *BreakerOpenError
	var rejected *RejectedError
	switch {
	case errors.Is(context.Cause(ctx), errElsewhere):
		s.o.Observer.SummaryFailed(p, reason(errElsewhere)) // the task is the other process's
		return errElsewhere
	case ctx.Err() != nil:
		t.Attempts--
		err = context.Cause(ctx)
	case errors.As(err, &open):
		t.Attempts--
		t.Reason = reason(err)
	case errors.As(err, &rejected), errors.Is(err, ErrPermanent), t.Attempts >= maxAttempts:
		t.Status, t.Reason = failed, reason(err)
	default:
		t.Reason = reason(err)
	}
	a, encodeErr := t.artifact(p)
	switch {
	case encodeErr != nil:
		return errors.Join(err, encodeErr)
	case errors.Is(err, ErrClosed):
		if errPut := s.put(p, t); errPut != nil {
			s.logger(errPut).Warn("summary task not recorded", "session_id", p.SessionID, "error", errPut)
		}
	default:
		s.unmade(p, t.Reason, a)
		s.o.Logger.Warn("summary failed", "session_id", p.SessionID, "from_seq", p.From, "to_seq", p.To,
			"summarizer", p.Summarizer, "attempt", t.Attempts, "reason", t.Reason)
	}
	return err
}

// put records a task, even while the scheduler closes.
func (s *Scheduler) put(p Proposal, t task) error {
	return putTask(context.WithoutCancel(s.ctx), s.o.Store, p, t)
}

// reason returns the text of an error for the journal and for watchers.
func reason(err error) string {
	if of, ok := errors.AsType[*BackendError](err); ok {
		err = of.Cause // watchers of a session need no session id in the text
	}
	text := strings.ToValidUTF8(fmt.Sprint(err), "\uFFFD")
	if errors.Is(err, context.DeadlineExceeded) {
		text = "no answer in time"
	}
	return ledger.Cut(text, reasonBytes)
}
