package logtest

import (
	"errors"
	"fmt"
	"sync"

	eventlog "github.com/contextd/contextd/internal/log"
)

// together runs f n times at once and waits.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

var concurrencyCases = []testCase{
	{name: "writers of one session get dense seqs and whole batches", run: func(h *harness) {
		const writers, batches = 8, 25
		together(writers, func(w int) {
			for b := range batches {
				id := func(i int) string { return fmt.Sprintf("w%d b%d i%d", w, b, i) }
				receipts, err := h.tryAppend("s", eventlog.Batch{Events: []eventlog.Event{Say(id(0)), Say(id(1)), Say(id(2))}})
				if err != nil {
					h.Errorf("append: %v", err)
					return
				}
				if receipts[1].Seq != receipts[0].Seq+1 || receipts[2].Seq != receipts[0].Seq+2 {
					h.Errorf("the batch is scattered: %v", receipts)
				}
			}
		})
		ids := h.ids("s", 1, 0)
		h.same("length", len(ids), writers*batches*3)
		next := map[string]int{}
		for i := 0; i < len(ids); i += 3 {
			var w, b, n int
			if _, err := fmt.Sscanf(ids[i], "w%d b%d i%d", &w, &b, &n); err != nil || n != 0 {
				h.Fatalf("a batch begins with %q", ids[i])
			}
			writer := fmt.Sprint(w)
			h.same("batch of writer "+writer, b, next[writer])
			next[writer]++
		}
	}},
	{name: "no writer loses against another", needs: needsOne, run: func(h *harness) {
		together(8, func(n int) {
			for i := range 10 {
				if _, err := h.tryAppend("s", eventlog.Batch{Events: []eventlog.Event{Say(fmt.Sprintf("w%d %d", n, i))}}); err != nil {
					h.Errorf("append: %v", err)
				}
			}
		})
		h.same("length", len(h.ids("s", 1, 0)), 80)
	}},
	{name: "writers of many sessions do not meet", run: func(h *harness) {
		const sessions, events = 16, 20
		together(sessions, func(n int) {
			for i := range events {
				if _, err := h.tryAppend(fmt.Sprintf("s%d", n), eventlog.Batch{Events: []eventlog.Event{Say(fmt.Sprint(i))}}); err != nil {
					h.Errorf("append: %v", err)
				}
			}
		})
		for n := range sessions {
			h.same("length", len(h.ids(fmt.Sprintf("s%d", n), 1, 0)), events)
		}
	}},
	{name: "of those who expect the same head one wins", run: func(h *harness) {
		var mu sync.Mutex
		wins := 0
		for round := range eventlog.Seq(10) {
			together(6, func(w int) {
				_, err := h.tryAppend("s", eventlog.Batch{ExpectedHead: seqp(round), Events: []eventlog.Event{Say(fmt.Sprintf("r%d w%d", round, w))}})
				var mismatch *eventlog.HeadMismatchError
				switch {
				case err == nil:
					mu.Lock()
					wins++
					mu.Unlock()
				case !errors.As(err, &mismatch):
					h.Errorf("append: %v", err)
				}
			})
		}
		h.same("wins", wins, 10)
		h.same("length", len(h.ids("s", 1, 0)), 10)
	}},
	{name: "of an append and a deletion that expects the head before it one wins", run: func(h *harness) {
		for round := range 30 {
			id := fmt.Sprint("s", round)
			h.append(id, Say("a"))
			of := h.session(id).Incarnation
			var appended, deleted error
			together(2, func(n int) {
				if n == 0 {
					_, appended = h.tryAppend(id, eventlog.Batch{Events: []eventlog.Event{Say("b")}, Of: &of})
				} else {
					deleted = h.s.DeleteSession(h.Context(), id, of, seqp(1))
				}
			})
			if deleted == nil {
				h.fails(appended, eventlog.NoSession(id))
				continue
			}
			h.fails(deleted, &eventlog.HeadMismatchError{Expected: 1, Actual: 2})
			h.ok(appended)
			h.same("ids", h.ids(id, 1, 0), []string{"a", "b"})
		}
	}},
	{name: "of those who repeat the same event all succeed and one stores it", run: func(h *harness) {
		var mu sync.Mutex
		fresh := 0
		together(12, func(int) {
			receipts, err := h.tryAppend("s", eventlog.Batch{Events: []eventlog.Event{Say("a")}})
			if err != nil || receipts[0].Seq != 1 {
				h.Errorf("append: %v %v", receipts, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if !receipts[0].Duplicate {
				fresh++
			}
		})
		h.same("stored", fresh, 1)
	}},
	{name: "of those who create the same session one does", run: func(h *harness) {
		var mu sync.Mutex
		made := 0
		together(8, func(int) {
			_, err := h.s.CreateSession(h.Context(), eventlog.Session{ID: "s"})
			var exists *eventlog.ExistsError
			if err != nil && !errors.As(err, &exists) {
				h.Errorf("create: %v", err)
			}
			if err == nil {
				mu.Lock()
				made++
				mu.Unlock()
			}
		})
		h.same("made", made, 1)
	}},
	{name: "readers see a whole prefix while others write", run: func(h *harness) {
		const n = 200
		h.append("s", Say("0"))
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := 1; i < n; i++ {
				if _, err := h.tryAppend("s", eventlog.Batch{Events: []eventlog.Event{Say(fmt.Sprint(i))}}); err != nil {
					h.Errorf("append: %v", err)
				}
			}
		})
		together(3, func(int) {
			var head eventlog.Seq
			for head < n {
				next, err := h.s.WaitPast(h.Context(), "s", head)
				if err != nil {
					h.Errorf("wait: %v", err)
					return
				}
				events, err := Collect(h.s.Read(h.Context(), "s", head+1, next))
				if err != nil || len(events) != int(next-head) {
					h.Errorf("read %d..%d: %d events, %v", head+1, next, len(events), err)
					return
				}
				for i, e := range events {
					if want := head + 1 + eventlog.Seq(i); e.Seq != want || e.ID != fmt.Sprint(want-1) {
						h.Errorf("event %d is %d %q", want, e.Seq, e.ID)
					}
				}
				head = next
			}
		})
		wg.Wait()
	}},
	{name: "forks and deletions go on under load", run: func(h *harness) {
		h.append("s", Say("a"), Say("b"), Say("c"))
		together(4, func(w int) {
			for i := range 6 {
				id := fmt.Sprintf("t%d-%d", w, i)
				if _, err := h.s.Fork(h.Context(), eventlog.ForkRequest{ParentID: "s", At: eventlog.Seq(i % 4), NewID: id}); err != nil {
					h.Errorf("fork: %v", err)
					continue
				}
				_, err := h.tryAppend(id, eventlog.Batch{Events: []eventlog.Event{Say("own")}})
				if err == nil && i%2 == 0 {
					err = h.s.DeleteSession(h.Context(), id, 0, nil)
				}
				if err == nil {
					_, err = h.tryAppend("s", eventlog.Batch{Events: []eventlog.Event{Say(id)}})
				}
				if err != nil {
					h.Errorf("%s: %v", id, err)
				}
			}
		})
		for w := range 4 {
			for i := 1; i < 6; i += 2 {
				h.same("fork", h.ids(fmt.Sprintf("t%d-%d", w, i), 1, 0), append([]string{"a", "b", "c"}[:i%4:i%4], "own"))
			}
		}
		h.same("parent", h.session("s").Head, eventlog.Seq(3+24))
	}},
}
