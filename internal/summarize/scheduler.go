package summarize

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/contextd/contextd/internal/guard"
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Options are what a Scheduler works with.
type Options struct {
	Store    eventlog.Store
	Sessions Sessions
	Registry *Registry
	// Observer may be nil.
	Observer Observer
	// Journal keeps the events of sessions; nil is one that nobody watches.
	Journal *lifecycle.Journal
	// Workers is how many spans a summarizer has at once; 0 means 2. Each has its own, so that
	// one which does not answer holds up no other.
	Workers int
	// MaxQueue is how many proposals wait at most; those offered beyond are dropped. 0
	// means 1024.
	MaxQueue int
	// Now dates summaries; nil means time.Now.
	Now func() time.Time
	// Logger may be nil.
	Logger *slog.Logger
}

// Scheduler summarises spans in the background. Its methods may be called from any
// goroutine.
type Scheduler struct {
	o Options
	// ctx ends when the scheduler closes.
	ctx    context.Context
	cancel context.CancelCauseFunc
	work   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	// jobs are those waiting and running; queue those waiting, oldest first.
	jobs  map[jobKey]*job
	queue []*job
	// busy are the running jobs, by session.
	busy map[string]*job
	// workers are how many run, by summarizer.
	workers map[string]int
}

type jobKey struct {
	sessionID, taskID string
	of                eventlog.Incarnation
}

// job is one proposal and its outcome, which may be read once done is closed.
type job struct {
	key      jobKey
	proposal Proposal
	// ctx ends with the scheduler or the session.
	ctx     context.Context
	cancel  context.CancelCauseFunc
	done    chan struct{}
	summary Summary
	err     error
}

// NewScheduler returns a scheduler that works until it is closed.
func NewScheduler(o Options) *Scheduler {
	if o.Workers == 0 {
		o.Workers = 2
	}
	if o.MaxQueue == 0 {
		o.MaxQueue = 1024
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Observer == nil {
		o.Observer = nobody{}
	}
	if o.Journal == nil {
		o.Journal = lifecycle.NewJournal(o.Store, lifecycle.NewBus(lifecycle.BusOptions{}), o.Now)
	}
	s := &Scheduler{o: o, jobs: map[jobKey]*job{}, busy: map[string]*job{}, workers: map[string]int{}}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// Offer proposes a span and returns at once. A proposal that is invalid, that is
// waiting or running already, or for which there is no room is dropped; one that was
// carried out, or failed for good, does nothing.
func (s *Scheduler) Offer(p Proposal) {
	if err := s.validate(p); err != nil {
		s.o.Logger.Warn("summary proposal dropped", "session_id", p.SessionID, "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) < s.o.MaxQueue {
		s.enqueue(p)
	}
}

// Do proposes a span and waits for the summary: a stored one if there is one, that of
// a running attempt, or that of a new one. An end of ctx ends the wait, not the work.
// The caller must hold nothing that Sessions.Material waits for.
// The errors are *eventlog.InvalidError, *UnknownError, *BackendError around a *FailedError
// for a span that is not tried again, a *RejectedError, a *BreakerOpenError or the
// backend's own, *eventlog.NotFoundError where the session is deleted, ErrClosed, and those
// of the store.
func (s *Scheduler) Do(ctx context.Context, p Proposal) (Summary, error) {
	if err := s.validate(p); err != nil {
		return Summary{}, err
	}
	s.mu.Lock()
	j := s.enqueue(p)
	s.mu.Unlock()
	if j == nil {
		return Summary{}, ErrClosed
	}
	select {
	case <-j.done:
		return j.summary, j.err
	case <-ctx.Done():
		return Summary{}, ctx.Err()
	}
}

// Resting reports whether a summarizer is left alone now because it failed too often in
// a row. One that is not configured is not.
func (s *Scheduler) Resting(summarizer string) bool {
	n, err := s.o.Registry.lookup(summarizer)
	return err == nil && n.breaker.state().Health == Open
}

// Forget gives up what waits and what runs for a session that was deleted: nobody is
// asked about it any more.
func (s *Scheduler) Forget(sessionID string, of eventlog.Incarnation) {
	gone := &eventlog.NotFoundError{Kind: "session", Name: sessionID}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = slices.DeleteFunc(s.queue, func(j *job) bool {
		theirs := j.key.sessionID == sessionID && j.key.of == of
		if theirs {
			s.finish(j, Summary{}, gone)
		}
		return theirs
	})
	for key, j := range s.jobs { // those that run, or were set aside
		if key.sessionID == sessionID && key.of == of {
			j.cancel(gone)
		}
	}
}

// Close gives up what waits, cancels what runs and returns when it has ended. What was
// given up stays in the journal.
func (s *Scheduler) Close() {
	s.mu.Lock()
	s.closed = true
	for _, j := range s.queue {
		s.finish(j, Summary{}, ErrClosed)
	}
	s.queue = nil
	s.mu.Unlock()
	s.cancel(ErrClosed)
	s.work.Wait()
}

// Resume offers what was begun before the last stop and is not finished, in all
// sessions. A session that cannot be read is logged and passed over.
func (s *Scheduler) Resume(ctx context.Context) error {
	const page = 256
	for after := ""; ; {
		sessions, err := s.o.Store.ListSessions(ctx, eventlog.SessionQuery{After: after, Limit: page})
		if err != nil {
			return err
		}
		for _, session := range sessions {
			proposals, err := unfinished(ctx, s.o.Store, session)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				s.logger(err).Warn("summary tasks unreadable", "session_id", session.ID, "error", err)
			}
			for _, p := range proposals {
				s.Offer(p)
			}
		}
		if len(sessions) < page {
			return nil
		}
		after = sessions[page-1].ID
	}
}

// logger is for what failed in a session. It says nothing if the session was deleted meanwhile.
func (s *Scheduler) logger(err error) *slog.Logger {
	if _, deleted := errors.AsType[*eventlog.NotFoundError](err); deleted {
		return slog.New(slog.DiscardHandler)
	}
	return s.o.Logger
}

func (s *Scheduler) validate(p Proposal) error {
	if err := p.validate(); err != nil {
		return err
	}
	_, err := s.o.Registry.lookup(p.Summarizer)
	return err
}

// enqueue returns the proposal's job, which may be there already, or nil after Close.
// The caller holds mu.
func (s *Scheduler) enqueue(p Proposal) *job {
	if s.closed {
		return nil
	}
	key := jobKey{p.SessionID, p.taskID(), p.Of}
	if j, ok := s.jobs[key]; ok {
		return j
	}
	j := &job{key: key, proposal: p, done: make(chan struct{})}
	j.ctx, j.cancel = context.WithCancelCause(s.ctx)
	s.jobs[key] = j
	s.queue = append(s.queue, j)
	s.hire(p.Summarizer)
	return j
}

// hire starts a worker of a summarizer if there is room for one. The caller holds mu.
func (s *Scheduler) hire(summarizer string) {
	if s.workers[summarizer] < s.o.Workers {
		s.workers[summarizer]++
		s.work.Go(func() { s.drain(summarizer) })
	}
}

// drain runs jobs of a summarizer until none is left that may run now. One that has to wait for
// another of its session is run by the worker of that one, or by one that this hires.
func (s *Scheduler) drain(summarizer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		i := slices.IndexFunc(s.queue, func(j *job) bool {
			return j.proposal.Summarizer == summarizer && s.busy[j.key.sessionID] == nil
		})
		if i < 0 {
			s.workers[summarizer]--
			return
		}
		j := s.queue[i]
		s.queue = slices.Delete(s.queue, i, i+1)
		s.busy[j.key.sessionID] = j
		s.mu.Unlock()
		summary, err := s.survive(j.ctx, j.proposal)
		if errors.Is(err, context.Canceled) && j.ctx.Err() != nil {
			err = context.Cause(j.ctx)
		}
		s.mu.Lock()
		delete(s.busy, j.key.sessionID)
		for _, waits := range s.queue {
			if waits.key.sessionID == j.key.sessionID && waits.proposal.Summarizer != summarizer {
				s.hire(waits.proposal.Summarizer)
			}
		}
		if errors.Is(err, errElsewhere) {
			s.setAside(j)
			continue
		}
		s.finish(j, summary, err)
	}
}

// survive is propose, where a panic ends the job alone.
func (s *Scheduler) survive(ctx context.Context, p Proposal) (summary Summary, err error) {
	ended := false
	err = guard.Run(s.o.Logger.With("session_id", p.SessionID), "summary", func() (err error) {
		summary, err = s.propose(ctx, p)
		ended = true
		return err
	})
	if !ended {
		err = errors.New("the summary was given up because of a panic")
		s.o.Observer.SummaryFailed(p, reason(err))
	}
	return summary, err
}

// finish ends a job. The caller holds mu.
func (s *Scheduler) finish(j *job, summary Summary, err error) {
	j.summary, j.err = summary, err
	j.cancel(nil)
	delete(s.jobs, j.key)
	close(j.done)
}

// nobody watches.
type nobody struct{}

func (nobody) SummaryStarted(Proposal)             {}
func (nobody) SummaryReady(Proposal, Summary)      {}
func (nobody) SummaryFailed(Proposal, string)      {}
func (nobody) BreakerChanged(string, BreakerState) {}
