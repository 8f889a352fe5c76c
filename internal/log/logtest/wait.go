package logtest

import (
	"context"
	"sync"

	eventlog "github.com/contextd/contextd/internal/log"
)

// waiting starts a WaitPast of event 1 of the session s, and returns a function that waits for its result.
func (h *harness) waiting(ctx context.Context) func() (eventlog.Seq, error) {
	var (
		wg   sync.WaitGroup
		head eventlog.Seq
		err  error
	)
	wg.Go(func() { head, err = h.s.WaitPast(ctx, "s", 1) })
	return func() (eventlog.Seq, error) {
		wg.Wait()
		return head, err
	}
}

var waitCases = []testCase{
	{name: "a head that is another is returned at once", run: func(h *harness) {
		h.append("s", Say("a"), Say("b"))
		for _, seq := range []eventlog.Seq{0, 1, 3} { // 3: the store was set back
			head, err := h.s.WaitPast(h.Context(), "s", seq)
			h.ok(err)
			h.same("head", head, eventlog.Seq(2))
		}
	}},
	{name: "a waiter learns of an append", run: func(h *harness) {
		h.append("s", Say("a"))
		one, two := h.waiting(h.Context()), h.waiting(h.Context())
		h.append("s", Say("b"))
		for _, waited := range []func() (eventlog.Seq, error){one, two} {
			head, err := waited()
			h.ok(err)
			h.same("head", head, eventlog.Seq(2))
		}
	}},
	{name: "a waiter learns of an append that nobody waits for", run: func(h *harness) {
		h.append("s", Say("a"))
		past := h.waiting(h.Context())
		_, err := h.s.Append(h.Context(), "s", eventlog.Batch{Events: []eventlog.Event{Say("b")}})
		h.ok(err)
		head, err := past()
		h.ok(err)
		h.same("head", head, eventlog.Seq(2))
		h.same("ids", h.ids("s", 1, 0), []string{"a", "b"})
	}},
	{name: "an unknown session is not found", run: func(h *harness) {
		_, err := h.s.WaitPast(h.Context(), "s", 0)
		h.fails(err, eventlog.NoSession("s"))
	}},
	{name: "a waiter learns of a deletion, even if the id is used again", run: func(h *harness) {
		h.append("s", Say("a"))
		past := h.waiting(h.Context())
		// Whether the waiter has begun or not, it ends in the same way.
		h.ok(h.s.DeleteSession(h.Context(), "s", 0, nil))
		_, err := past()
		h.fails(err, eventlog.NoSession("s"))
		h.append("s", Say("b"))
		h.same("head", h.session("s").Head, eventlog.Seq(1))
	}},
	{name: "a context ends the wait", run: func(h *harness) {
		h.append("s", Say("a"))
		ctx, cancel := context.WithCancel(h.Context())
		past := h.waiting(ctx)
		cancel()
		_, err := past()
		h.fails(err, context.Canceled)
	}},
}
