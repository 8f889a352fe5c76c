package summarize

import (
	"context"
	"errors"
	"time"
)

// Only one process at a time makes a session's summaries, as only one worker does within a process, so that no model
// is paid twice for the same span.
const (
	leasedWork = "summaries"
	// leaseTime is how long the lease of a process that died keeps others from its work.
	leaseTime = 30 * time.Second
	// renewEvery leaves time for two failed renewals before the lease ends.
	renewEvery = leaseTime / 3
	// askEvery is how often to check a job that another process has.
	askEvery = 500 * time.Millisecond
)

// errElsewhere says that another process makes summaries of the session now.
var errElsewhere = errors.New("another process makes summaries of the session")

// leased runs a proposal while this process holds the session's lease. It returns errElsewhere if another process
// holds it and has not finished the proposal.
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

// renew renews the lease until ctx ends, and stops the work if another process has got it. While the store cannot be
// reached the work goes on: the store may be back before the lease ends.
func (s *Scheduler) renew(ctx context.Context, p Proposal, stop context.CancelCauseFunc) {
	for wait(ctx, renewEvery) {
		if has, err := s.o.Store.Lease(ctx, p.SessionID, p.Of, leasedWork, leaseTime); err == nil && !has {
			stop(errElsewhere)
			return
		}
	}
}

// elsewhere returns what another process made of the proposal so far; errElsewhere if it has not finished.
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

// setAside requeues a job after a while, which frees its worker. The caller holds mu.
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

// wait sleeps for d. It returns false if ctx ends first.
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
