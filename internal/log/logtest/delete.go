package logtest

import (
	"errors"
	"fmt"

	eventlog "github.com/contextd/contextd/internal/log"
)

var deleteCases = []testCase{
	{name: "a deleted session is gone", run: func(h *harness) {
		h.append("s", Say("a"))
		h.append("t", Say("a"))
		h.ok(h.s.PutArtifact(h.Context(), "s", eventlog.Artifact{Kind: "k", ID: "i"}))
		h.ok(h.s.DeleteSession(h.Context(), "s"))
		check := func() {
			_, err := h.s.Session(h.Context(), "s")
			h.fails(err, noSession("s"))
			_, err = Collect(h.s.Read(h.Context(), "s", 1, 0))
			h.fails(err, noSession("s"))
			_, err = h.s.Artifact(h.Context(), "s", "k", 0, "i")
			h.fails(err, noSession("s"))
			h.fails(h.s.DeleteSession(h.Context(), "s"), noSession("s"))
			h.same("sessions", sessionIDs(h, eventlog.SessionQuery{}), []string{"t"})
			h.same("the other", h.ids("t", 1, 0), []string{"a"})
		}
		check()
		if h.o.reopen != nil {
			h.reopen()
			check()
		}
	}},
	{name: "the id of a deleted session is free", run: func(h *harness) {
		h.append("s", Say("a"), Say("b"))
		h.ok(h.s.PutArtifact(h.Context(), "s", eventlog.Artifact{Kind: "k", ID: "i"}))
		h.ok(h.s.DeleteSession(h.Context(), "s"))
		h.same("receipts", h.append("s", Say("b")), []eventlog.Receipt{{Seq: 1, EventID: "b"}})
		_, err := h.s.Artifact(h.Context(), "s", "k", 0, "i")
		h.fails(err, &eventlog.NotFoundError{Kind: "artifact", Name: "k/0/i"})
		if h.o.reopen != nil {
			h.reopen()
			h.same("ids", h.ids("s", 1, 0), []string{"b"})
		}
	}},
	{name: "forks stay whole in whatever order their family goes", run: func(h *harness) {
		orders := [][]string{{"s", "t", "u"}, {"u", "t", "s"}, {"t", "s", "u"}, {"t", "u", "s"}, {"s", "u", "t"}}
		for i, order := range orders {
			id := func(name string) string { return fmt.Sprintf("%s%d", name, i) }
			want := map[string][]string{
				"s": {"a", "b", "c", "d"}, "t": {"a", "b", "c", "t1"}, "u": {"a", "b", "u1"}, "v": {"a", "b", "c", "t1", "v1"},
			}
			h.append(id("s"), Say("a"), Say("b"), Say("c"), Say("d"))
			h.fork(id("s"), 3, id("t"))
			h.append(id("t"), Say("t1"))
			h.fork(id("t"), 2, id("u"))
			h.append(id("u"), Say("u1"))
			h.fork(id("t"), 4, id("v"))
			h.append(id("v"), Say("v1"))
			for _, gone := range order {
				h.ok(h.s.DeleteSession(h.Context(), id(gone)))
				delete(want, gone)
				if h.o.reopen != nil {
					h.reopen()
				}
				for name, ids := range want {
					h.same(name+" without "+gone, h.ids(id(name), 1, 0), ids)
				}
			}
			// The last of the line still knows its ids and goes on.
			h.same("receipts", h.append(id("v"), Say("b"), Say("d")), []eventlog.Receipt{
				{Seq: 2, EventID: "b", Duplicate: true}, {Seq: 6, EventID: "d"},
			})
		}
	}},
	{name: "a fork outlives its parent's name", run: func(h *harness) {
		h.append("s", Say("a"), Say("b"))
		h.fork("s", 1, "t")
		h.ok(h.s.DeleteSession(h.Context(), "s"))
		h.append("s", Say("x"))
		h.same("fork", h.ids("t", 1, 0), []string{"a"})
		h.same("parent", h.session("t").ParentID, "s")
		h.same("new session", h.ids("s", 1, 0), []string{"x"})
	}},
	{name: "a reading that has begun ends with what was there or not found", run: func(h *harness) {
		for i := range 100 {
			h.append("s", Say(fmt.Sprint(i)))
		}
		n := 0
		for _, err := range h.s.Read(h.Context(), "s", 1, 0) {
			if err != nil {
				h.fails(err, noSession("s"))
				break
			}
			if n++; n == 1 {
				h.ok(h.s.DeleteSession(h.Context(), "s"))
			}
		}
		if n == 0 {
			h.Fatal("nothing was read")
		}
	}},
	{name: "an append under way is there before or not found", run: func(h *harness) {
		h.append("s", Say("a"))
		c, err := h.s.Append(h.Context(), "s", eventlog.Batch{Events: []eventlog.Event{Say("b")}})
		h.ok(err)
		h.ok(h.s.DeleteSession(h.Context(), "s"))
		var gone *eventlog.NotFoundError
		if _, err := c.Wait(h.Context()); err != nil && !errors.As(err, &gone) {
			h.Fatalf("got %v", err)
		}
		_, err = h.s.Session(h.Context(), "s")
		h.fails(err, noSession("s"))
	}},
	{name: "what is not there cannot be deleted", run: func(h *harness) {
		h.fails(h.s.DeleteSession(h.Context(), "s"), noSession("s"))
	}},
}
