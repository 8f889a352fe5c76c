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

// Options are what a Scheduler needs.
type Options struct {
	Store    eventlog.Store
	Sessions Sessions
	Registry *Registry
	// Observer may be nil.
	Observer Observer
	// Journal stores the events of sessions; nil is one without watchers.
	Journal *lifecycle.Journal
	// Workers is how many spans each summarizer works on at once; 0 is 2. Each summarizer has workers of its own, so
	// that one that does not answer does not delay the others.
	Workers int
	// MaxQueue is the most proposals that wait; further ones are dropped. 0 is 1024.
	MaxQueue int
	// Now gives the time of summaries; nil is time.Now.
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
	// jobs are the waiting and the running jobs; queue has the waiting ones, oldest first.
	jobs  map[jobKey]*job
	queue []*job
	// busy are the running jobs, by session.
	busy map[string]*job
	// workers is how many workers run, by summarizer.
	workers map[string]int
}

type jobKey struct {
	sessionID, taskID string
	of                eventlog.Incarnation
}

// job is one proposal and its outcome, which may be read when done is closed.
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

// Offer proposes a span and returns at once. It drops a proposal that is invalid, that is already waiting or running,
// or for which the queue has no room. One that was carried out, or that failed permanently, has no effect.
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

// Do proposes a span and waits for the summary: the stored one, that of a running attempt, or that of a new one. If
// ctx ends, the wait ends, not the work. The caller must hold nothing for which Sessions.Material waits. The error is
// one of
//   - *eventlog.InvalidError, or *UnknownError;
//   - *BackendError around a *FailedError (the span is not tried again), a *RejectedError, a *BreakerOpenError or an
//     error of the backend;
//   - *eventlog.NotFoundError if the session was deleted;
//   - ErrClosed;
//   - an error of the store.
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

// Resting reports whether a summarizer is not asked now because it failed too often in a row. It is false for one
// that is not configured.
func (s *Scheduler) Resting(summarizer string) bool {
	return s.o.Registry.Health(summarizer) == Open
}

// Forget ends the waiting and running jobs of a deleted session: no backend is asked about it any more.
func (s *Scheduler) Forget(sessionID string, of eventlog.Incarnation) {
	gone := eventlog.NoSession(sessionID)
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

// Close drops waiting jobs, cancels running ones, and returns when these have ended. Resume finds the jobs for which
// a backend was asked, because their tasks are stored; the next assembly of a session proposes the others again.
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

// Resume offers the unfinished tasks of all sessions. It logs and skips sessions that cannot be read.
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

// logger returns the logger for an error in a session. It logs nothing if the session was deleted.
func (s *Scheduler) logger(err error) *slog.Logger {
	if eventlog.IsMissing(err) {
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

// enqueue returns the proposal's job, which may exist already; nil after Close. The caller holds mu.
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

// drain runs jobs of a summarizer until none remains that may run now. A job that must wait for another job of its
// session is run by the worker of that job, or by a worker that this one hires.
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

// survive does the same as propose, but a panic ends only the job.
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

// nobody is an Observer that does nothing.
type nobody struct{}

func (nobody) SummaryStarted(Proposal)             {}
func (nobody) SummaryReady(Proposal, Summary)      {}
func (nobody) SummaryFailed(Proposal, string)      {}
func (nobody) BreakerChanged(string, BreakerState) {}
