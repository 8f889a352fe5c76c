package pull_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/pull"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outcome is what a request came to.
type outcome struct {
	out summarize.Output
	err error
}

// ask parks a request, and settles its text as a scheduler would.
func ask(ctx context.Context, q *pull.Queue, r summarize.Request, s summarize.Summary, refused error) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		out, err := q.Summarize(ctx, r)
		if err == nil {
			q.Settled(r, s, refused)
		}
		done <- outcome{out, err}
	}()
	synctest.Wait()
	return done
}

func request(task, session string) summarize.Request {
	return summarize.Request{TaskID: task, SessionID: session, From: 2, To: 9, System: "system", Prompt: "prompt", MaxOutputTokens: 70}
}

func lease(t *testing.T, q *pull.Queue, worker string, sessions ...string) pull.Task {
	t.Helper()
	task, err := q.Lease(t.Context(), worker, sessions, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// none expects that there is nothing to lease for a while.
func none(t *testing.T, q *pull.Queue, wait time.Duration, sessions ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	if task, err := q.Lease(ctx, "idle", sessions, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %+v, %v", task, err)
	}
}

func TestLeaseAndComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := pull.New(0)
		done := ask(t.Context(), q, request("t1", "s"), summarize.Summary{ID: "s9-x"}, nil)
		task := lease(t, q, "w")
		want := pull.Task{ID: "t1.0", SessionID: "s", From: 2, To: 9, System: "system", Prompt: "prompt", MaxOutputTokens: 70, Expires: time.Now().Add(time.Minute)}
		if task != want {
			t.Errorf("%+v", task)
		}
		none(t, q, 30*time.Second)
		s, err := q.Complete(t.Context(), pull.Completion{TaskID: task.ID, Text: "text", InputTokens: 5, OutputTokens: 6, Model: "m"})
		if err != nil || s.ID != "s9-x" {
			t.Errorf("%+v, %v", s, err)
		}
		if o := <-done; o.err != nil || o.out != (summarize.Output{Text: "text", InputTokens: 5, OutputTokens: 6, Model: "m"}) {
			t.Errorf("%+v", o)
		}
		var missing *eventlog.NotFoundError
		for _, id := range []string{task.ID, "other", ""} {
			if _, err := q.Complete(t.Context(), pull.Completion{TaskID: id, Text: "again"}); !errors.As(err, &missing) || missing.Kind != "summary task" || missing.Name != id {
				t.Errorf("%q completed: %v", id, err)
			}
		}
		none(t, q, time.Hour)
	})
}

func TestOutcomesOfACompletion(t *testing.T) {
	rejected := &summarize.RejectedError{Reason: "it is empty"}
	for name, c := range map[string]struct {
		completion pull.Completion
		refused    error
		// worker is the error that the worker gets, asker the one of the request.
		worker, asker error
	}{
		"rejected":       {pull.Completion{Text: " "}, rejected, rejected, nil},
		"worker's error": {pull.Completion{Error: "no credit"}, nil, nil, &pull.WorkerError{Worker: "w", Reason: "no credit"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := pull.New(0)
				done := ask(t.Context(), q, request("t", "s"), summarize.Summary{}, c.refused)
				c.completion.TaskID = lease(t, q, "w").ID
				if s, err := q.Complete(t.Context(), c.completion); err != c.worker || s.ID != "" { //nolint:errorlint // the very error is handed on
					t.Errorf("%+v, %v", s, err)
				}
				o := <-done
				if (o.err == nil) != (c.asker == nil) || o.err != nil && o.err.Error() != c.asker.Error() {
					t.Errorf("%+v", o)
				}
			})
		})
	}
}

// TestLeasesExpire: a task goes from a silent worker to the next, and the first text
// that comes is taken, whoever brings it.
func TestLeasesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := pull.New(0)
		done := ask(t.Context(), q, request("t", "s"), summarize.Summary{ID: "x"}, nil)
		begin := time.Now()
		first := lease(t, q, "silent")
		second := lease(t, q, "next")
		if first.ID != second.ID || time.Since(begin) != time.Minute || second.Expires.Sub(begin) != 2*time.Minute {
			t.Errorf("%+v after %s", second, time.Since(begin))
		}
		<-time.After(5 * time.Minute) // both leases are over, and nobody else is there
		if s, err := q.Complete(t.Context(), pull.Completion{TaskID: first.ID, Text: "late"}); err != nil || s.ID != "x" {
			t.Errorf("%+v, %v", s, err)
		}
		if o := <-done; o.out.Text != "late" {
			t.Errorf("%+v", o)
		}
		var missing *eventlog.NotFoundError
		if _, err := q.Complete(t.Context(), pull.Completion{TaskID: second.ID, Text: "later"}); !errors.As(err, &missing) {
			t.Error(err)
		}
	})
}

func TestLeasesEndAfter(t *testing.T) {
	for _, c := range []struct{ queue, asked, want time.Duration }{
		{0, 0, pull.DefaultLease},
		{time.Minute, 0, time.Minute},
		{time.Minute, 3 * time.Minute, 3 * time.Minute},
		{0, 2 * pull.MaxLease, pull.MaxLease},
		{2 * pull.MaxLease, 0, pull.MaxLease},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := pull.New(c.queue)
			ctx, cancel := context.WithCancel(t.Context())
			done := ask(ctx, q, request("t", "s"), summarize.Summary{}, nil)
			if task, err := q.Lease(ctx, "w", nil, c.asked); err != nil || time.Until(task.Expires) != c.want {
				t.Errorf("%s of a queue of %s: %s, %v", c.asked, c.queue, time.Until(task.Expires), err)
			}
			cancel()
			<-done
		})
	}
}

// TestTheFirstLeaseToEnd: of two tasks with workers, who waits gets the one whose lease ends first.
func TestTheFirstLeaseToEnd(t *testing.T) {
	for _, leases := range [][2]time.Duration{{2 * time.Minute, time.Minute}, {time.Minute, 2 * time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			q := pull.New(0)
			ctx, cancel := context.WithCancel(t.Context())
			first, second := ask(ctx, q, request("t1", "s"), summarize.Summary{}, nil), ask(ctx, q, request("t2", "s"), summarize.Summary{}, nil)
			for _, d := range leases {
				if _, err := q.Lease(ctx, "silent", nil, d); err != nil {
					t.Fatal(err)
				}
			}
			begin := time.Now()
			task, err := q.Lease(ctx, "next", nil, 0)
			if wait := time.Since(begin); err != nil || wait != time.Minute || (task.ID == "t1.0") != (leases[0] == time.Minute) {
				t.Errorf("leases of %s: %s after %s, %v", leases, task.ID, wait, err)
			}
			cancel()
			<-first
			<-second
		})
	}
}

func TestOldestFirstOfTheWorkersSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := pull.New(time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		var all []<-chan outcome
		for _, task := range []string{"t1", "t2", "t3"} {
			all = append(all, ask(ctx, q, request(task, "of "+task), summarize.Summary{}, nil))
		}
		none(t, q, time.Second, "of nobody")
		var got []string
		for _, sessions := range [][]string{{"of t3", "of nobody"}, nil, nil} {
			got = append(got, lease(t, q, "w", sessions...).ID)
		}
		if !slices.Equal(got, []string{"t3.0", "t1.0", "t2.0"}) {
			t.Errorf("leased %q", got)
		}
		cancel()
		for _, done := range all {
			if o := <-done; !errors.Is(o.err, context.Canceled) {
				t.Errorf("%+v", o)
			}
		}
		none(t, q, 3*time.Hour)
	})
}

// TestWaitingWorkers: each task goes to one of the workers that wait, as it comes.
func TestWaitingWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := pull.New(0)
		got := make(chan string)
		for range 3 {
			go func() {
				task, err := q.Lease(t.Context(), "w", nil, 0)
				if err != nil {
					t.Error(err)
				}
				s, err := q.Complete(t.Context(), pull.Completion{TaskID: task.ID, Text: "text"})
				if err != nil {
					t.Error(err)
				}
				got <- task.ID + " " + s.ID
			}()
		}
		synctest.Wait()
		var want, seen []string
		for _, task := range []string{"a", "b", "c"} {
			ask(t.Context(), q, request(task, "s"), summarize.Summary{ID: "sum " + task}, nil)
			want = append(want, task+".0 sum "+task)
			seen = append(seen, <-got)
		}
		if !slices.Equal(seen, want) {
			t.Errorf("%q", seen)
		}
	})
}

// TestRequestEnds: nobody comes in time, and the task is gone.
func TestRequestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := pull.New(0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := ask(ctx, q, request("t", "s"), summarize.Summary{}, nil)
		task := lease(t, q, "w")
		if o := <-done; !errors.Is(o.err, context.DeadlineExceeded) {
			t.Errorf("%+v", o)
		}
		var missing *eventlog.NotFoundError
		if _, err := q.Complete(t.Context(), pull.Completion{TaskID: task.ID, Text: "too late"}); !errors.As(err, &missing) {
			t.Error(err)
		}
		// The next attempt has the same name, and a worker that is still at it helps.
		again := ask(t.Context(), q, request("t", "s"), summarize.Summary{ID: "x"}, nil)
		if s, err := q.Complete(t.Context(), pull.Completion{TaskID: task.ID, Text: "at last"}); err != nil || s.ID != "x" {
			t.Errorf("%+v, %v", s, err)
		}
		if o := <-again; o.out.Text != "at last" {
			t.Errorf("%+v", o)
		}
	})
}

func TestCompleteEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := pull.New(0)
		r := request("t", "s")
		go func() {
			if _, err := q.Summarize(t.Context(), r); err != nil {
				t.Error(err)
			}
		}()
		task := lease(t, q, "w")
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.Summarize(soon, r); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the same request waits twice: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.Complete(ctx, pull.Completion{TaskID: task.ID, Text: "text"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if _, err := q.Summarize(t.Context(), r); err == nil {
			t.Error("the same request waits again before its text is settled")
		}
		q.Settled(r, summarize.Summary{}, nil)
		q.Settled(r, summarize.Summary{}, nil) // nobody's
	})
}

func TestInvalidLeases(t *testing.T) {
	q := pull.New(0)
	for field, call := range map[string]func() (pull.Task, error){
		"worker_id": func() (pull.Task, error) { return q.Lease(t.Context(), "", nil, 0) },
		"lease":     func() (pull.Task, error) { return q.Lease(t.Context(), "w", nil, -1) },
	} {
		var invalid *eventlog.InvalidError
		if _, err := call(); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestTextAndEndAtOnce: where the text and the end of the request meet, either the
// worker learns that the task is gone, or the text is taken and settled.
func TestTextAndEndAtOnce(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			q := pull.New(0)
			ctx, cancel := context.WithCancel(t.Context())
			done := ask(ctx, q, request("t", "s"), summarize.Summary{ID: "x"}, nil)
			task := lease(t, q, "w")
			go cancel()
			s, err := q.Complete(t.Context(), pull.Completion{TaskID: task.ID, Text: "text"})
			var missing *eventlog.NotFoundError
			switch o := <-done; {
			case errors.As(err, &missing):
				if !errors.Is(o.err, context.Canceled) {
					t.Errorf("%+v", o)
				}
			case err != nil || s.ID != "x" || o.err != nil || o.out.Text != "text":
				t.Errorf("%+v, %v, %+v", s, err, o)
			}
		})
	}
}
