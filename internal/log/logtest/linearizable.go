package logtest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	eventlog "github.com/contextd/contextd/internal/log"
)

// history records what concurrent calls reported about the head of one log.
type history struct {
	clock atomic.Int64 // counts begins and ends of calls
	mu    sync.Mutex
	calls []observed
}

// observed is a call that moved the head to a seq, or found it there.
type observed struct {
	what       string
	head       eventlog.Seq
	moved      bool
	begin, end int64
}

func (o observed) String() string {
	return fmt.Sprintf("%s %d at %d-%d", o.what, o.head, o.begin, o.end)
}

// record records a call, unless the call reports nothing about the head.
func (r *history) record(what string, call func() (head eventlog.Seq, moved, known bool)) eventlog.Seq {
	begin := r.clock.Add(1)
	head, moved, known := call()
	end := r.clock.Add(1)
	if known {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls = append(r.calls, observed{what, head, moved, begin, end})
	}
	return head
}

// check verifies that the calls are linearizable: there is an order in which each call takes effect at one moment
// between its begin and its end. The head only grows, so that is the order of the heads that they found: no call may
// have ended before one with a smaller head began.
func (r *history) check(h *harness) {
	h.Helper()
	slices.SortFunc(r.calls, func(a, b observed) int {
		first := func(o observed) int {
			if o.moved {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.head, b.head), cmp.Compare(first(a), first(b)), cmp.Compare(a.begin, b.begin))
	})
	var latest observed // of the calls before, the one that began last
	for i, o := range r.calls {
		if o.moved && i > 0 && r.calls[i-1].moved && r.calls[i-1].head == o.head {
			h.Errorf("two calls moved the head to one seq: %v, %v", r.calls[i-1], o)
		}
		if o.end < latest.begin {
			h.Errorf("a call says what was over, or was not there yet: %v, %v", latest, o)
		}
		if o.begin > latest.begin {
			latest = o
		}
	}
}

var linearizableCases = []testCase{
	{name: "appends that expect a head, and all that shows the head, happen one after the other", run: func(h *harness) {
		const writers, rounds = 16, 8
		h.append("s", Say("first"))
		r := &history{}
		ask := func(what string, ask func() (eventlog.Seq, error)) eventlog.Seq {
			return r.record(what, func() (eventlog.Seq, bool, bool) {
				head, err := ask()
				if err != nil {
					h.Errorf("%s: %v", what, err)
				}
				return head, false, err == nil
			})
		}
		asks := []func() eventlog.Seq{
			func() eventlog.Seq {
				return ask("session", func() (eventlog.Seq, error) {
					s, err := h.s.Session(h.Context(), "s")
					return s.Head, err
				})
			},
			func() eventlog.Seq {
				return ask("list", func() (eventlog.Seq, error) {
					all, err := h.s.ListSessions(h.Context(), eventlog.SessionQuery{Limit: 1})
					if err != nil || len(all) != 1 {
						return 0, fmt.Errorf("%d sessions, %w", len(all), err)
					}
					return all[0].Head, nil
				})
			},
			func() eventlog.Seq {
				return ask("read", func() (eventlog.Seq, error) {
					all, err := Collect(h.s.Read(h.Context(), "s", 1, 0))
					return eventlog.Seq(len(all)), err
				})
			},
			func() eventlog.Seq {
				return ask("wait", func() (eventlog.Seq, error) { return h.s.WaitPast(h.Context(), "s", 0) })
			},
		}
		together(writers, func(w int) {
			head := eventlog.Seq(1)
			for round := range rounds {
				if round > 0 && round%2 == 0 {
					head = asks[(w+round/2)%len(asks)]()
				}
				e, stored := Say(fmt.Sprintf("w%d r%d", w, round)), false
				head = r.record("append", func() (eventlog.Seq, bool, bool) {
					receipts, err := h.tryAppend("s", eventlog.Batch{ExpectedHead: &head, Events: []eventlog.Event{e}})
					if mismatch := (*eventlog.HeadMismatchError)(nil); errors.As(err, &mismatch) {
						if mismatch.Expected != head || mismatch.Actual == head {
							h.Errorf("expected %d: %v", head, err)
						}
						return mismatch.Actual, false, true
					}
					if err != nil || receipts[0].Seq != head+1 {
						h.Errorf("append after %d: %v, %v", head, receipts, err)
						return head, false, false
					}
					stored = true
					return receipts[0].Seq, true, true
				})
				if !stored {
					continue
				}
				// A caller that repeats the append gets the seq at which it was stored.
				got, err := h.tryAppend("s", eventlog.Batch{ExpectedHead: seqp(0), Events: []eventlog.Event{e}})
				if err != nil || !got[0].Duplicate || got[0].Seq != head {
					h.Errorf("%s at %d, repeated: %v, %v", e.ID, head, got, err)
				}
			}
		})
		r.check(h)
	}},
}
