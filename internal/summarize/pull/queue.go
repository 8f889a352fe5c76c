package pull

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/summarize"
)

// Task is a request in the form for workers.
type Task struct {
	ID, SessionID string
	// From and To are the first and the last event of the span that the text will replace.
	From, To eventlog.Seq
	// System and Prompt must be sent to the model unchanged.
	System, Prompt  string
	MaxOutputTokens uint64
	// Expires is when another worker may lease the task.
	Expires time.Time
}

// Completion is a worker's answer: Text, or Error if there is no text.
type Completion struct {
	TaskID      string
	Text, Error string
	// InputTokens and OutputTokens are the model's own count; 0 if it gave none.
	InputTokens, OutputTokens uint64
	Model                     string
}

// WorkerError is the reason that a worker gave instead of a text.
type WorkerError struct{ Worker, Reason string }

func (e *WorkerError) Error() string { return fmt.Sprintf("worker %q failed: %s", e.Worker, e.Reason) }

// Queue is a Backend whose requests wait for workers. Use New.
type Queue struct {
	lease time.Duration

	mu sync.Mutex
	// tasks are the waiting and the leased tasks, oldest first.
	tasks []*parked
	// settling are the tasks with a text about which the scheduler has not decided yet.
	settling map[string]*parked
	// arrived is closed and replaced when a task arrives.
	arrived chan struct{}
}

// parked is a request and its answer.
type parked struct {
	Task
	// worker is the worker that has the lease, or had it last.
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
	return &Queue{lease: cmp.Or(lease, DefaultLease), settling: map[string]*parked{}, arrived: make(chan struct{})}
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
	return p.answer, p.err // the answer came at the same time, and its worker waits for the outcome
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

// Complete ends a task and waits until its summary is durable. The summary has no ID if further parts of the text
// follow, or if the worker reported an error. The error is a *summarize.RejectedError if the text is refused, and an
// *eventlog.NotFoundError if the task is unknown or another worker ended it. An expired lease does not matter. If ctx
// ends, only the wait ends, not the task.
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

// taskID returns the id of a chunk of a task.
func taskID(r summarize.Request) string { return r.TaskID + "." + strconv.Itoa(r.Chunk) }
