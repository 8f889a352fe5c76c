package logtest

import (
	"errors"
	"fmt"
	"iter"

	eventlog "github.com/contextd/contextd/internal/log"
)

var deleteCases = []testCase{
	{name: "a deleted session is gone", run: func(h *harness) {
		h.append("s", Say("a"))
		h.append("t", Say("a"))
		h.ok(h.s.PutArtifacts(h.Context(), "s", eventlog.Artifact{Kind: "k", ID: "i"}))
		h.ok(h.s.DeleteSession(h.Context(), "s", 0, nil))
		check := func() {
			_, err := h.s.Session(h.Context(), "s")
			h.fails(err, eventlog.NoSession("s"))
			_, err = Collect(h.s.Read(h.Context(), "s", 1, 0))
			h.fails(err, eventlog.NoSession("s"))
			_, err = h.s.Artifact(h.Context(), "s", "k", 0, "i")
			h.fails(err, eventlog.NoSession("s"))
			h.fails(h.s.DeleteSession(h.Context(), "s", 0, nil), eventlog.NoSession("s"))
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
		h.ok(h.s.PutArtifacts(h.Context(), "s", eventlog.Artifact{Kind: "k", ID: "i"}))
		h.ok(h.s.DeleteSession(h.Context(), "s", 0, nil))
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
				h.ok(h.s.DeleteSession(h.Context(), id(gone), 0, nil))
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
		h.ok(h.s.DeleteSession(h.Context(), "s", 0, nil))
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
				h.fails(err, eventlog.NoSession("s"))
				break
			}
			if n++; n == 1 {
				h.ok(h.s.DeleteSession(h.Context(), "s", 0, nil))
			}
		}
		if n == 0 {
			h.Fatal("nothing was read")
		}
	}},
	{name: "a sequence that has begun shows nothing of another session of the id", run: func(h *harness) {
		const n = 20 // more than a page
		say := func(who string) {
			for i := range n {
				h.append("s", Message(fmt.Sprint(i), eventlog.RoleUser, eventlog.Text{Text: who}))
				h.ok(h.s.PutArtifacts(h.Context(), "s", eventlog.Artifact{Kind: "k", Seq: eventlog.Seq(i + 1), ID: "i", Value: []byte(who)}))
			}
		}
		once := func(seen int) {
			if seen == 1 {
				h.ok(h.s.DeleteSession(h.Context(), "s", 0, nil))
				say("after")
			}
		}
		ends := func(what string, seen int, err error) {
			if err == nil && seen != n || err != nil && !eventlog.IsMissing(err) {
				h.Errorf("%s: %d, %v", what, seen, err)
			}
		}
		read := func(what string, events iter.Seq2[eventlog.Event, error]) {
			seen, last := 0, error(nil)
			for e, err := range events {
				if last = err; err != nil {
					break
				}
				if e.Body.(*eventlog.Message).Blocks[0].(eventlog.Text).Text != "before" {
					h.Fatalf("%s: event %d is another session's", what, e.Seq)
				}
				seen++
				once(seen)
			}
			ends(what, seen, last)
		}
		say("before")
		read("read", h.s.Read(h.Context(), "s", 1, 0))
		h.ok(h.s.DeleteSession(h.Context(), "s", 0, nil))
		say("before")
		if s, ok := bare(h.s).(eventlog.RunsReader); ok {
			read("read runs", s.ReadRuns(h.Context(), "s", eventlog.Ranges{{From: 1, To: 2}, {From: 3, To: n}}))
		}
		h.ok(h.s.DeleteSession(h.Context(), "s", 0, nil))
		say("before")
		seen, last := 0, error(nil)
		for a, err := range h.s.Artifacts(h.Context(), "s", eventlog.ArtifactQuery{Kind: "k"}) {
			if last = err; err != nil {
				break
			}
			if string(a.Value) != "before" {
				h.Fatalf("artifact %d is another session's", a.Seq)
			}
			seen++
			once(seen)
		}
		ends("artifacts", seen, last)
	}},
	{name: "an append under way is there before or not found", run: func(h *harness) {
		h.append("s", Say("a"))
		c, err := h.s.Append(h.Context(), "s", eventlog.Batch{Events: []eventlog.Event{Say("b")}})
		h.ok(err)
		h.ok(h.s.DeleteSession(h.Context(), "s", 0, nil))
		var gone *eventlog.NotFoundError
		if _, err := c.Wait(h.Context()); err != nil && !errors.As(err, &gone) {
			h.Fatalf("got %v", err)
		}
		_, err = h.s.Session(h.Context(), "s")
		h.fails(err, eventlog.NoSession("s"))
	}},
	{name: "a session is distinguished from those that had its id", run: func(h *harness) {
		lives := map[eventlog.Incarnation]string{}
		check := func(how string) eventlog.Session {
			s := h.session("s")
			if other, twice := lives[s.Incarnation]; twice || s.Incarnation == 0 {
				h.Fatalf("%s: incarnation %d is that of %s", how, s.Incarnation, other)
			}
			lives[s.Incarnation] = how
			h.ok(h.s.DeleteSession(h.Context(), "s", 0, nil))
			return s
		}
		h.append("parent", Say("a"))
		lives[h.session("parent").Incarnation] = "parent"
		for i := range 3 {
			h.append("s", Say("a"))
			check(fmt.Sprintf("appended %d", i))
			made, err := h.s.CreateSession(h.Context(), eventlog.Session{ID: "s", CreateTime: epoch, Incarnation: 99})
			h.ok(err)
			h.same("incarnation", check(fmt.Sprintf("created %d", i)).Incarnation, made.Incarnation)
			h.same("incarnation", h.fork("parent", 1, "s").Incarnation, check(fmt.Sprintf("forked %d", i)).Incarnation)
		}
		listed, err := h.s.ListSessions(h.Context(), eventlog.SessionQuery{})
		h.ok(err)
		h.same("listed", listed[0].Incarnation, h.session("parent").Incarnation)
		if h.o.reopen != nil {
			before := h.session("parent").Incarnation
			h.reopen()
			h.same("reopened", h.session("parent").Incarnation, before)
		}
	}},
	{name: "a batch goes to the incarnation that it is meant for", run: func(h *harness) {
		to := func(of eventlog.Incarnation, id string) error {
			_, err := h.tryAppend("s", eventlog.Batch{Events: []eventlog.Event{Say(id)}, Time: epoch, Of: &of})
			return err
		}
		h.fails(to(7, "none"), eventlog.NoSession("s"))
		h.ok(to(0, "first"))
		old := h.session("s").Incarnation
		h.fails(to(0, "twice"), &eventlog.ExistsError{Kind: "session", Name: "s"})
		h.ok(to(old, "second"))
		h.same("ids", h.ids("s", 1, 0), []string{"first", "second"})
		h.ok(h.s.DeleteSession(h.Context(), "s", 0, nil))
		h.fails(to(old, "late"), eventlog.NoSession("s"))
		h.append("s", Say("new"))
		h.fails(to(old, "new"), eventlog.NoSession("s"))
		h.fails(to(0, "new"), &eventlog.ExistsError{Kind: "session", Name: "s"})
		h.same("ids", h.ids("s", 1, 0), []string{"new"})
	}},
	{name: "a deletion is of the incarnation that it is meant for", run: func(h *harness) {
		h.append("s", Say("a"))
		old := h.session("s").Incarnation
		h.fails(h.s.DeleteSession(h.Context(), "s", old+100, nil), eventlog.NoSession("s"))
		h.ok(h.s.DeleteSession(h.Context(), "s", old, nil))
		h.fails(h.s.DeleteSession(h.Context(), "s", old, nil), eventlog.NoSession("s"))
		h.append("s", Say("b"))
		h.fails(h.s.DeleteSession(h.Context(), "s", old, nil), eventlog.NoSession("s"))
		h.same("ids", h.ids("s", 1, 0), []string{"b"})
	}},
	{name: "a deletion is of the head that it is meant for", run: func(h *harness) {
		h.append("s", Say("a"), Say("b"))
		h.fails(h.s.DeleteSession(h.Context(), "s", 0, seqp(0)), &eventlog.HeadMismatchError{Expected: 0, Actual: 2})
		h.fails(h.s.DeleteSession(h.Context(), "s", 0, seqp(1)), &eventlog.HeadMismatchError{Expected: 1, Actual: 2})
		h.fails(h.s.DeleteSession(h.Context(), "s", 0, seqp(3)), &eventlog.HeadMismatchError{Expected: 3, Actual: 2})
		h.same("ids", h.ids("s", 1, 0), []string{"a", "b"})
		_, err := h.s.Fork(h.Context(), eventlog.ForkRequest{ParentID: "s", NewID: "fork", At: 1, Time: epoch})
		h.ok(err)
		h.fails(h.s.DeleteSession(h.Context(), "fork", 0, seqp(2)), &eventlog.HeadMismatchError{Expected: 2, Actual: 1})
		h.ok(h.s.DeleteSession(h.Context(), "fork", 0, seqp(1)))
		old := h.session("s").Incarnation
		h.fails(h.s.DeleteSession(h.Context(), "s", old+100, seqp(1)), eventlog.NoSession("s"))
		h.ok(h.s.DeleteSession(h.Context(), "s", old, seqp(2)))
		h.fails(h.s.DeleteSession(h.Context(), "s", 0, seqp(2)), eventlog.NoSession("s"))
		_, err = h.s.CreateSession(h.Context(), eventlog.Session{ID: "s", CreateTime: epoch})
		h.ok(err)
		h.ok(h.s.DeleteSession(h.Context(), "s", 0, seqp(0)))
	}},
	{name: "a deletion's head counts batches that are not durable yet", run: func(h *harness) {
		h.append("s", Say("a"))
		commit, err := h.s.Append(h.Context(), "s", eventlog.Batch{Events: []eventlog.Event{Say("b")}})
		h.ok(err)
		h.fails(h.s.DeleteSession(h.Context(), "s", 0, seqp(1)), &eventlog.HeadMismatchError{Expected: 1, Actual: 2})
		_, err = commit.Wait(h.Context())
		h.ok(err)
		h.ok(h.s.DeleteSession(h.Context(), "s", 0, seqp(2)))
	}},
	{name: "an artifact goes to the incarnation that it was derived from", run: func(h *harness) {
		h.append("s", Say("a"))
		old := h.session("s").Incarnation
		put := func(of eventlog.Incarnation) error {
			return h.s.PutArtifacts(h.Context(), "s", eventlog.Artifact{Kind: "k", ID: "i", Of: of})
		}
		h.ok(put(old))
		kept, err := h.s.Artifact(h.Context(), "s", "k", 0, "i")
		h.ok(err)
		h.same("kept", kept, eventlog.Artifact{Kind: "k", ID: "i"})
		h.ok(h.s.DeleteSession(h.Context(), "s", 0, nil))
		h.fails(put(old), eventlog.NoSession("s"))
		h.append("s", Say("a"))
		h.fails(put(old), eventlog.NoSession("s"))
		h.ok(put(0))
	}},
	{name: "what is deleted is gone from the medium", medium: true, needs: needsErasure, run: func(h *harness) {
		// Texts that do not compress, so that the medium has them as they are.
		secret, kept := "dq7Hx0cVb9Zt3Lw5RkQa8Wc1Vn6Ti0Fz", "Ym2Pf8Js6Ng1Ue4Ko7Xh3Br9Ld5Sv0Gy"
		h.append("s", Say("a"), Say(secret))
		h.append("t", Say(kept))
		h.ok(h.s.PutArtifacts(h.Context(), "s", eventlog.Artifact{Kind: "k", Seq: 2, ID: "i", Value: []byte(secret)}))
		h.fork("s", 1, "u")
		session, err := h.s.Session(h.Context(), "s")
		h.ok(err)
		h.ok(h.s.DeleteSession(h.Context(), "s", 0, nil))
		h.ok(h.s.WaitErased(h.Context(), session.Incarnation))
		h.same("deleted", h.o.holds(h.TB, bare(h.s), secret), false)
		h.same("kept", h.o.holds(h.TB, bare(h.s), kept), true)
	}},
	{name: "what is not there cannot be deleted", run: func(h *harness) {
		h.fails(h.s.DeleteSession(h.Context(), "s", 0, nil), eventlog.NoSession("s"))
	}},
}
