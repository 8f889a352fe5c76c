package summarize

import (
	"context"
	"errors"
	"time"
)

// A session's summaries are made by one process at a time, as they are made by one worker within a
// process: so no model is paid twice for a span.
const (
	leasedWork = "summaries"
	// leaseTime is how long a process that has died keeps others from its work.
	leaseTime = 30 * time.Second
	// renewEvery leaves time to renew a lease twice again before it is over.
	renewEvery = leaseTime / 3
	// askEvery is after how long a job that another process does is looked at again.
	askEvery = 500 * time.Millisecond
)

// errElsewhere says that another process makes summaries of the session now.
var errElsewhere = errors.New("another process makes summaries of the session")

// leased is run for as long as no other process works on the session. It returns errElsewhere if one
// does that has not ended the proposal's work yet.
func (s *Scheduler) leased(ctx context.Context, p Proposal) (Summary, error) {
	has, err := s.o.Store.Lease(ctx, p.SessionID, p.Of, leasedWork, leaseTime)
	if err != nil {
		return Summary{}, err
	}
	if !has {
		return s.elsewhere(ctx, p)
	}
	ctx, stop := context.WithCancelCause(ctx)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		s.renew(ctx, p, stop)
	}()
	summary, err := s.run(ctx, p)
	stop(nil)
	<-renewed
	if err := s.o.Store.Release(context.WithoutCancel(ctx), p.SessionID, p.Of, leasedWork); err != nil {
		s.logger(err).Warn("other processes have to wait for the end of a lease", "session_id", p.SessionID, "error", err)
	}
	return summary, err
}

// renew keeps a lease until ctx ends, and stops the work where another process has it by now.
// While the store cannot be asked the work goes on: it may be back before the lease is over.
func (s *Scheduler) renew(ctx context.Context, p Proposal, stop context.CancelCauseFunc) {
	for wait(ctx, renewEvery) {
		if has, err := s.o.Store.Lease(ctx, p.SessionID, p.Of, leasedWork, leaseTime); err == nil && !has {
			stop(errElsewhere)
			return
		}
	}
}

// elsewhere is what came of a proposal in another process so far; errElsewhere if nothing did.
func (s *Scheduler) elsewhere(ctx context.Context, p Proposal) (Summary, error) {
	t, stored, err := s.known(ctx, p)
	switch {
	case stored.ID != "" || err != nil:
		return stored, err
	case t.Status != failed:
		return Summary{}, errElsewhere
	}
	n, err := s.o.Registry.lookup(p.Summarizer)
	if err == nil {
		err = n.backendError(t.failure(p))
	}
	return Summary{}, err
}

// setAside has a job looked at again after a while. Its worker is free meanwhile. The caller holds
// mu.
func (s *Scheduler) setAside(j *job) {
	s.work.Go(func() {
		again := wait(j.ctx, askEvery)
		s.mu.Lock()
		defer s.mu.Unlock()
		if !again {
			s.finish(j, Summary{}, context.Cause(j.ctx))
			return
		}
		s.queue = append(s.queue, j)
		s.hire(j.proposal.Summarizer)
	})
}

// wait reports whether ctx has not ended after d.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
