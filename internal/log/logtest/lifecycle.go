package logtest

import (
	"errors"
	"sync"

	eventlog "github.com/contextd/contextd/internal/log"
)

var lifecycleCases = []testCase{
	{name: "an open store is healthy", run: func(h *harness) { h.ok(h.s.Healthy()) }},
	{name: "a closed store refuses everything", closes: true, run: func(h *harness) {
		h.append("s", Say("a"))
		seq, artifacts := h.s.Read(h.Context(), "s", 1, 0), h.s.Artifacts(h.Context(), "s", eventlog.ArtifactQuery{Kind: "k"})
		h.ok(h.s.Close())
		ctx := h.Context()
		_, err := h.s.CreateSession(ctx, eventlog.Session{ID: "t"})
		h.fails(err, eventlog.ErrClosed)
		_, err = h.s.Session(ctx, "s")
		h.fails(err, eventlog.ErrClosed)
		_, err = h.s.ListSessions(ctx, eventlog.SessionQuery{})
		h.fails(err, eventlog.ErrClosed)
		_, err = h.s.Fork(ctx, eventlog.ForkRequest{ParentID: "s", NewID: "t"})
		h.fails(err, eventlog.ErrClosed)
		h.fails(h.s.DeleteSession(ctx, "s", 0, nil), eventlog.ErrClosed)
		_, err = h.s.Append(ctx, "s", eventlog.Batch{Events: []eventlog.Event{Say("b")}})
		h.fails(err, eventlog.ErrClosed)
		_, err = Collect(seq)
		h.fails(err, eventlog.ErrClosed)
		_, err = h.s.WaitPast(ctx, "s", 0)
		h.fails(err, eventlog.ErrClosed)
		h.fails(h.s.PutArtifacts(ctx, "s", artifact("k", 0, "i", "")), eventlog.ErrClosed)
		_, err = h.s.Artifact(ctx, "s", "k", 0, "i")
		h.fails(err, eventlog.ErrClosed)
		_, err = Collect(artifacts)
		h.fails(err, eventlog.ErrClosed)
		_, err = h.s.Lease(ctx, "s", 0, "w", 0)
		h.fails(err, eventlog.ErrClosed)
		h.fails(h.s.Healthy(), eventlog.ErrClosed)
		h.fails(h.s.Close(), eventlog.ErrClosed)
	}},
	{name: "closing ends waiters", closes: true, run: func(h *harness) {
		h.append("s", Say("a"))
		past := h.waiting(h.Context())
		h.ok(h.s.Close())
		_, err := past()
		h.fails(err, eventlog.ErrClosed)
	}},
	{name: "closing waits for what was admitted", closes: true, run: func(h *harness) {
		var commits []eventlog.Commit
		for _, id := range []string{"a", "b", "c"} {
			c, err := h.s.Append(h.Context(), "s", eventlog.Batch{Events: []eventlog.Event{Say(id)}})
			h.ok(err)
			commits = append(commits, c)
		}
		h.ok(h.s.Close())
		for i, c := range commits {
			receipts, err := c.Wait(h.Context())
			h.ok(err)
			h.same("seq", receipts[0].Seq, eventlog.Seq(i+1))
		}
	}},
	{name: "closing under load loses nothing that was acknowledged", closes: true, run: func(h *harness) {
		started := make(chan struct{})
		var once, mu = sync.Once{}, sync.Mutex{}
		acked := map[string]bool{}
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					id := string(rune('a'+w)) + string(rune('0'+i%10)) + string(rune('0'+i/10%10)) + string(rune('0'+i/100))
					_, err := h.tryAppend("s", eventlog.Batch{Events: []eventlog.Event{Say(id)}})
					if errors.Is(err, eventlog.ErrClosed) {
						return
					}
					if err != nil {
						h.Errorf("append: %v", err)
						return
					}
					mu.Lock()
					acked[id] = true
					mu.Unlock()
					once.Do(func() { close(started) })
				}
			})
		}
		<-started
		h.ok(h.s.Close())
		wg.Wait()
		if h.o.reopen == nil {
			return
		}
		h.reopen()
		for _, id := range h.ids("s", 1, 0) {
			delete(acked, id)
		}
		h.same("lost", len(acked), 0)
		h.ok(h.s.Close())
	}},
}
