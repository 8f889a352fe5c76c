package pull

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/summarize"
)

// Task is a request as a worker sees it.
type Task struct {
	ID, SessionID string
	// From and To are the span that the text will replace.
	From, To eventlog.Seq
	// System and Prompt are for the model unchanged.
	System, Prompt  string
	MaxOutputTokens uint64
	// Expires is when the task may be handed to another worker.
	Expires time.Time
}

// Completion is what a worker brings back: Text, or Error if there is none.
type Completion struct {
	TaskID      string
	Text, Error string
	// InputTokens and OutputTokens are the model's own count; 0 if it gave none.
	InputTokens, OutputTokens uint64
	Model                     string
}

// WorkerError is what a worker said instead of bringing a text.
type WorkerError struct{ Worker, Reason string }

func (e *WorkerError) Error() string { return fmt.Sprintf("worker %q failed: %s", e.Worker, e.Reason) }

// Queue is a Backend whose requests wait for workers. Use New.
type Queue struct {
	lease time.Duration

	mu sync.Mutex
	// tasks wait or are leased, oldest first.
	tasks []*parked
	// settling have their text; the scheduler has not decided about it yet.
	settling map[string]*parked
	// arrived is closed and replaced when a task arrives.
	arrived chan struct{}
}

// parked is a request and its answer.
type parked struct {
	Task
	// worker has the lease, or had it last.
	worker string
	// answer is written once, before answered is closed.
	answer   summarize.Output
	err      error
	answered chan struct{}
	// summary and refused are written before settled is closed.
	summary summarize.Summary
	refused error
	settled chan struct{}
}

var _ summarize.Settler = (*Queue)(nil)

// New returns a queue. lease is the duration of leases for which a worker gives none; 0 means DefaultLease.
func New(lease time.Duration) *Queue {
	if lease <= 0 {
		lease = DefaultLease
	}
	return &Queue{lease: min(lease, MaxLease), settling: map[string]*parked{}, arrived: make(chan struct{})}
}

// Summarize waits for a worker's text. A worker's error is a *WorkerError.
func (q *Queue) Summarize(ctx context.Context, r summarize.Request) (summarize.Output, error) {
	p := &parked{
		Task: Task{
			ID: taskID(r), SessionID: r.SessionID, From: r.From, To: r.To,
			System: r.System, Prompt: r.Prompt, MaxOutputTokens: r.MaxOutputTokens,
		},
		answered: make(chan struct{}), settled: make(chan struct{}),
	}
	q.mu.Lock()
	if q.find(p.ID) >= 0 || q.settling[p.ID] != nil {
		q.mu.Unlock()
		return summarize.Output{}, fmt.Errorf("summary task %q waits for an answer already", p.ID)
	}
	q.tasks = append(q.tasks, p)
	close(q.arrived)
	q.arrived = make(chan struct{})
	q.mu.Unlock()

	select {
	case <-p.answered:
		return p.answer, p.err
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := q.find(p.ID); i >= 0 {
		q.tasks = slices.Delete(q.tasks, i, i+1)
		return summarize.Output{}, ctx.Err()
	}
	return p.answer, p.err // the answer came at the same moment, and its worker waits for the outcome
}

// Settled implements summarize.Settler.
func (q *Queue) Settled(r summarize.Request, s summarize.Summary, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.settling[taskID(r)]
	if p == nil {
		return
	}
	delete(q.settling, p.ID)
	p.summary, p.refused = s, err
	close(p.settled)
}

// Complete ends a task and waits until its summary is durable. The summary has no ID if the text is one of several
// parts and more follow, or if the worker reported an error. A text that is refused is a *summarize.RejectedError. A
// task that is unknown, or that another worker ended, is an *eventlog.NotFoundError; an expired lease does not
// matter. If ctx ends, only the wait ends, not the task.
func (q *Queue) Complete(ctx context.Context, c Completion) (summarize.Summary, error) {
	p, err := q.answer(c)
	if err != nil || p.err != nil {
		return summarize.Summary{}, err
	}
	select {
	case <-p.settled:
		return p.summary, p.refused
	case <-ctx.Done():
		return summarize.Summary{}, ctx.Err()
	}
}

func (q *Queue) answer(c Completion) (*parked, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := q.find(c.TaskID)
	if i < 0 {
		return nil, &eventlog.NotFoundError{Kind: "summary task", Name: c.TaskID}
	}
	p := q.tasks[i]
	q.tasks = slices.Delete(q.tasks, i, i+1)
	if c.Error != "" {
		p.err = &WorkerError{p.worker, c.Error}
	} else {
		p.answer = summarize.Output{Text: c.Text, InputTokens: c.InputTokens, OutputTokens: c.OutputTokens, Model: c.Model}
		q.settling[p.ID] = p
	}
	close(p.answered)
	return p, nil
}

func (q *Queue) find(id string) int {
	return slices.IndexFunc(q.tasks, func(p *parked) bool { return p.ID == id })
}

// taskID names a chunk of a task.
func taskID(r summarize.Request) string { return r.TaskID + "." + strconv.Itoa(r.Chunk) }
