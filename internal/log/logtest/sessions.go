package logtest

import (
	"fmt"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

var sessionCases = []testCase{
	{name: "a created session is as it was asked for", run: func(h *harness) {
		labels, settings := map[string]string{"team": "a", "empty": ""}, []byte{0, 0xff, 'x'}
		want := eventlog.Session{
			ID: "s", CreateTime: epoch, UpdateTime: epoch,
			Labels: map[string]string{"team": "a", "empty": ""}, Settings: []byte{0, 0xff, 'x'},
		}
		got, err := h.s.CreateSession(h.Context(), eventlog.Session{
			ID: "s", CreateTime: epoch.In(time.FixedZone("away", 7200)), Labels: labels, Settings: settings,
			// What the log itself knows is not taken from the caller.
			Head: 7, Turns: 3, LogBytes: 9, UpdateTime: epoch.Add(time.Hour), ParentID: "p", ForkSeq: 4,
		})
		h.ok(err)
		h.same("created", got, want)
		// The store keeps its own copy.
		labels["team"], settings[0] = "b", 1
		h.same("read back", h.session("s"), want)
	}},
	{name: "an id is taken once", run: func(h *harness) {
		_, err := h.s.CreateSession(h.Context(), eventlog.Session{ID: "s", CreateTime: epoch})
		h.ok(err)
		_, err = h.s.CreateSession(h.Context(), eventlog.Session{ID: "s", CreateTime: epoch, Labels: map[string]string{"k": "v"}})
		h.fails(err, &eventlog.ExistsError{Kind: "session", Name: "s"})
		h.same("labels", h.session("s").Labels, map[string]string(nil))
		h.append("t", Say("a"))
		_, err = h.s.CreateSession(h.Context(), eventlog.Session{ID: "t"})
		h.fails(err, &eventlog.ExistsError{Kind: "session", Name: "t"})
	}},
	{name: "an id is UTF-8 and not empty, labels are UTF-8", run: func(h *harness) {
		_, err := h.s.CreateSession(h.Context(), eventlog.Session{})
		h.failsOn(err, "session_id")
		_, err = h.s.CreateSession(h.Context(), eventlog.Session{ID: "\xff"})
		h.failsOn(err, "session_id")
		_, err = h.s.CreateSession(h.Context(), eventlog.Session{ID: "s", Labels: map[string]string{"k": "\xff"}})
		h.failsOn(err, `labels["k"]`)
		_, err = h.s.Session(h.Context(), "s")
		h.fails(err, eventlog.NoSession("s"))
	}},
	{name: "ids are any strings", run: func(h *harness) {
		for _, id := range []string{"a", "a\x00", "a\x00\x01b", "a/b", "ä", "\U0010FFFF", " "} {
			h.append(id, Say("in "+id))
		}
		h.same("a", h.ids("a", 1, 0), []string{"in a"})
		h.same("a with NUL", h.ids("a\x00", 1, 0), []string{"in a\x00"})
		h.same("order", sessionIDs(h, eventlog.SessionQuery{}), []string{" ", "a", "a\x00", "a\x00\x01b", "a/b", "ä", "\U0010FFFF"})
	}},
	{name: "an unknown session is not found", run: func(h *harness) {
		_, err := h.s.Session(h.Context(), "s")
		h.fails(err, eventlog.NoSession("s"))
	}},
	{name: "a session has its head, turns, size and times", run: func(h *harness) {
		later := epoch.Add(time.Minute)
		_, err := h.tryAppend("s", eventlog.Batch{Events: []eventlog.Event{Say("one"), Call("two", "c")}, Time: epoch})
		h.ok(err)
		_, err = h.tryAppend("s", eventlog.Batch{Events: []eventlog.Event{Answer("three", "c"), Call("four")}, Time: later})
		h.ok(err)
		var size uint64
		for _, e := range h.read("s", 1, 0) {
			size += eventlog.Size(e)
		}
		h.same("session", h.session("s"), eventlog.Session{
			ID: "s", Head: 4, Turns: 2, LogBytes: size, CreateTime: epoch, UpdateTime: later,
		})
	}},
	{name: "listing goes in the order of ids, by pages", run: func(h *harness) {
		var want []string
		for i := range 25 {
			id := fmt.Sprintf("s%02d", i)
			want = append(want, id)
			if i%2 == 0 {
				h.append(id, Say("a"))
				continue
			}
			_, err := h.s.CreateSession(h.Context(), eventlog.Session{ID: id})
			h.ok(err)
		}
		h.same("all", sessionIDs(h, eventlog.SessionQuery{}), want)
		var got []string
		for q := (eventlog.SessionQuery{Limit: 10}); ; q.After = got[len(got)-1] {
			page := sessionIDs(h, q)
			if len(page) == 0 {
				break
			}
			h.same("page", page, want[len(got):min(len(got)+10, len(want))])
			got = append(got, page...)
		}
		h.same("pages", got, want)
		h.same("after an id that is none", sessionIDs(h, eventlog.SessionQuery{After: "s20x"}), want[21:])
		h.same("before an id", sessionIDs(h, eventlog.SessionQuery{Before: "s05"}), want[:5])
		h.same("between ids", sessionIDs(h, eventlog.SessionQuery{After: "s03", Before: "s05x", Limit: 9}), want[4:6])
		h.same("between none", sessionIDs(h, eventlog.SessionQuery{After: "s05", Before: "s05"}), []string(nil))
		_, err := h.s.ListSessions(h.Context(), eventlog.SessionQuery{Limit: -1})
		h.failsOn(err, "page_size")
	}},
	{name: "listing filters by all the labels", run: func(h *harness) {
		for id, labels := range map[string]map[string]string{
			"a": {"x": "1"}, "b": {"x": "1", "y": "2"}, "c": {"x": "2", "y": "2"}, "d": {"x": "", "y": "2"}, "e": nil,
		} {
			_, err := h.s.CreateSession(h.Context(), eventlog.Session{ID: id, Labels: labels})
			h.ok(err)
		}
		list := func(limit int, labels map[string]string) []string {
			return sessionIDs(h, eventlog.SessionQuery{Limit: limit, Labels: labels})
		}
		h.same("x=1", list(0, map[string]string{"x": "1"}), []string{"a", "b"})
		h.same("x=1 y=2", list(0, map[string]string{"x": "1", "y": "2"}), []string{"b"})
		h.same("y=2, two of them", list(2, map[string]string{"y": "2"}), []string{"b", "c"})
		h.same("an empty value is not an absent one", list(0, map[string]string{"x": ""}), []string{"d"})
		h.same("z", list(0, map[string]string{"z": "1"}), []string(nil))
	}},
	{name: "what is listed is what Session returns", run: func(h *harness) {
		h.append("s", Say("a"), Call("b", "c"))
		h.fork("s", 1, "t")
		all, err := h.s.ListSessions(h.Context(), eventlog.SessionQuery{})
		h.ok(err)
		h.same("listed", all, []eventlog.Session{h.session("s"), h.session("t")})
	}},
	{name: "sessions survive a restart", durable: true, run: func(h *harness) {
		_, err := h.s.CreateSession(h.Context(), eventlog.Session{ID: "empty", CreateTime: epoch, Labels: map[string]string{"k": "v"}, Settings: []byte("x")})
		h.ok(err)
		h.append("s", Say("a"), Call("b", "c"))
		h.fork("s", 1, "t")
		h.fork("s", 0, "u")
		before, err := h.s.ListSessions(h.Context(), eventlog.SessionQuery{})
		h.ok(err)
		h.reopen()
		after, err := h.s.ListSessions(h.Context(), eventlog.SessionQuery{})
		h.ok(err)
		h.same("sessions", after, before)
		// The log goes on where it was: the call is still open.
		h.append("s", Answer("d", "c"))
		h.same("head", h.session("s").Head, eventlog.Seq(3))
	}},
}

func sessionIDs(h *harness, q eventlog.SessionQuery) []string {
	h.Helper()
	page, err := h.s.ListSessions(h.Context(), q)
	h.ok(err)
	var ids []string
	for _, s := range page {
		ids = append(ids, s.ID)
	}
	return ids
}
