package logtest

import (
	"fmt"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// unlabelled has no labels rather than an empty map of them.
func unlabelled(s eventlog.Session) eventlog.Session {
	if len(s.Labels) == 0 {
		s.Labels = nil
	}
	return s
}

var forkCases = []testCase{
	{name: "a fork has its parent's log up to a seq", run: func(h *harness) {
		_, err := h.s.CreateSession(h.Context(), eventlog.Session{ID: "s", CreateTime: epoch, Labels: map[string]string{"k": "v"}, Settings: []byte("x")})
		h.ok(err)
		h.append("s", Say("a"), Call("b", "c"), Answer("d", "c"))
		later := epoch.Add(time.Hour)
		want := eventlog.Session{
			ID: "t", Head: 2, Turns: 1, CreateTime: later, UpdateTime: later,
			Labels: map[string]string{"k": "v"}, Settings: []byte("x"), ParentID: "s", ForkSeq: 2,
		}
		for _, e := range h.read("s", 1, 2) {
			want.LogBytes += eventlog.Size(e)
		}
		h.same("fork", h.fork("s", 2, "t"), want)
		h.same("read back", h.session("t"), want)
		h.same("events", h.read("t", 1, 0), h.read("s", 1, 2))
	}},
	{name: "parent and fork diverge", run: func(h *harness) {
		h.append("s", Say("a"), Say("b"))
		h.fork("s", 1, "t")
		h.append("s", Say("c"))
		h.append("t", Say("d"), Say("e"))
		h.same("parent", h.ids("s", 1, 0), []string{"a", "b", "c"})
		h.same("fork", h.ids("t", 1, 0), []string{"a", "d", "e"})
		h.same("range over the seam", h.ids("t", 1, 2), []string{"a", "d"})
		h.same("range after the seam", h.ids("t", 2, 0), []string{"d", "e"})
		h.same("heads", []eventlog.Seq{h.session("s").Head, h.session("t").Head}, []eventlog.Seq{3, 3})
	}},
	{name: "a fork goes on from the state at its seq", run: func(h *harness) {
		h.append("s", Call("a", "c1", "c2"))
		h.append("s", Answer("b", "c1"))
		h.append("s", Answer("d", "c2"), Call("e"))
		// At 1 both calls are open, at 2 one, at 3 none.
		h.fork("s", 1, "t")
		h.append("t", Answer("x", "c2", "c1"))
		h.fork("s", 2, "u")
		_, err := h.tryAppend("u", eventlog.Batch{Events: []eventlog.Event{Answer("x", "c1")}})
		h.failsOn(err, "events[0].message.blocks[0].tool_result.call_id")
		h.append("u", Answer("x", "c2"), Call("y"))
		h.fork("s", 3, "v")
		_, err = h.tryAppend("v", eventlog.Batch{Events: []eventlog.Event{Answer("x", "c2")}})
		h.failsOn(err, "events[0].message.blocks[0].tool_result.call_id")
		h.same("turns", []uint32{h.session("t").Turns, h.session("u").Turns, h.session("v").Turns}, []uint32{1, 2, 1})
	}},
	{name: "the state at every seq is the state at that time", run: func(h *harness) {
		// More calls stay open than a store is likely to write in full each time.
		var heads []eventlog.Session
		for i := range 120 {
			h.append("s", Call(fmt.Sprintf("a%d", i), fmt.Sprintf("c%d", i)))
			if i%3 == 2 {
				h.append("s", Answer(fmt.Sprintf("r%d", i), fmt.Sprintf("c%d", i/2)))
			}
			heads = append(heads, h.session("s"))
		}
		for i, want := range heads {
			if i%7 != 0 {
				continue
			}
			id := fmt.Sprintf("t%d", i)
			got := h.fork("s", want.Head, id)
			h.same("head", []uint64{uint64(got.Head), uint64(got.Turns), got.LogBytes}, []uint64{uint64(want.Head), uint64(want.Turns), want.LogBytes})
			// Calls up to i are open, but those answered: of every third, the half.
			answered := map[int]bool{}
			for j := 2; j <= i; j += 3 {
				answered[j/2] = true
			}
			for j := 0; j <= i; j += 5 {
				_, err := h.tryAppend(id, eventlog.Batch{Events: []eventlog.Event{Answer(fmt.Sprintf("x%d", j), fmt.Sprintf("c%d", j))}})
				if answered[j] {
					h.failsOn(err, "events[0].message.blocks[0].tool_result.call_id")
					continue
				}
				h.ok(err)
			}
		}
	}},
	{name: "a fork at 0 shares nothing", run: func(h *harness) {
		h.append("s", Say("a"))
		h.ok(h.s.PutArtifacts(h.Context(), "s", eventlog.Artifact{Kind: "k", ID: "i"}))
		h.same("head", h.fork("s", 0, "t").Head, eventlog.Seq(0))
		h.same("receipts", h.append("t", Say("b"), Say("a")), []eventlog.Receipt{{Seq: 1, EventID: "b"}, {Seq: 2, EventID: "a"}})
		all, err := Collect(h.s.Artifacts(h.Context(), "t", eventlog.ArtifactQuery{Kind: "k"}))
		h.ok(err)
		h.same("artifacts", len(all), 0)
	}},
	{name: "a fork of an empty session with labels of its own", run: func(h *harness) {
		_, err := h.s.CreateSession(h.Context(), eventlog.Session{ID: "s", CreateTime: epoch, Labels: map[string]string{"k": "v"}, Settings: []byte("x")})
		h.ok(err)
		later := epoch.Add(time.Hour)
		labels := map[string]string{"own": "1"}
		for id, own := range map[string]map[string]string{"t": labels, "u": {}} {
			want := eventlog.Session{ID: id, CreateTime: later, UpdateTime: later, Settings: []byte("x"), ParentID: "s"}
			if len(own) > 0 {
				want.Labels = map[string]string{"own": "1"}
			}
			got, err := h.s.Fork(h.Context(), eventlog.ForkRequest{ParentID: "s", NewID: id, Time: later, Labels: own})
			h.ok(err)
			labels["own"] = "changed by its owner"
			h.same("fork", unlabelled(got), want)
			if h.o.reopen != nil {
				h.reopen()
			}
			h.same("read back", unlabelled(h.session(id)), want)
			labels["own"] = "1"
		}
		h.same("parent", h.session("s").Labels, map[string]string{"k": "v"})
		h.same("found", sessionIDs(h, eventlog.SessionQuery{Labels: map[string]string{"own": "1"}}), []string{"t"})
		_, err = h.s.Fork(h.Context(), eventlog.ForkRequest{ParentID: "s", NewID: "v", Labels: map[string]string{"k": "\xff"}})
		h.failsOn(err, `labels["k"]`)
		h.append("t", Say("a"))
		h.ok(h.s.DeleteSession(h.Context(), "s", 0, nil))
		h.same("fork without its parent", h.ids("t", 1, 0), []string{"a"})
		h.same("its parent's name", h.session("t").ParentID, "s")
	}},
	{name: "forks of forks share the whole line", run: func(h *harness) {
		h.append("g0", Say("e0"))
		want := []string{"e0"}
		for i := 1; i <= 12; i++ {
			id, parent := fmt.Sprintf("g%d", i), fmt.Sprintf("g%d", i-1)
			h.fork(parent, eventlog.Seq(i), id)
			h.append(parent, Say("aside"))
			h.append(id, Say(fmt.Sprintf("e%d", i)))
			want = append(want, fmt.Sprintf("e%d", i))
		}
		h.same("line", h.ids("g12", 1, 0), want)
		h.fork("g12", 5, "back")
		h.append("back", Say("new"))
		h.same("back", h.ids("back", 1, 0), append(want[:5:5], "new"))
	}},
	{name: "what cannot be forked", run: func(h *harness) {
		h.append("s", Say("a"))
		h.append("t", Say("b"))
		try := func(parent string, at eventlog.Seq, id string) error {
			_, err := h.s.Fork(h.Context(), eventlog.ForkRequest{ParentID: parent, At: at, NewID: id})
			return err
		}
		h.fails(try("none", 0, "u"), eventlog.NoSession("none"))
		h.failsOn(try("s", 2, "u"), "at_seq")
		h.failsOn(try("s", 1, ""), "new_session_id")
		h.failsOn(try("s", 1, "\xff"), "new_session_id")
		h.fails(try("s", 1, "t"), &eventlog.ExistsError{Kind: "session", Name: "t"})
		h.fails(try("s", 1, "s"), &eventlog.ExistsError{Kind: "session", Name: "s"})
		h.same("sessions", sessionIDs(h, eventlog.SessionQuery{}), []string{"s", "t"})
	}},
	{name: "forks survive a restart", durable: true, run: func(h *harness) {
		h.append("s", Say("a"), Call("b", "c"), Say("d"))
		h.fork("s", 2, "t")
		h.fork("t", 2, "u")
		h.append("u", Answer("e", "c"))
		h.reopen()
		h.append("t", Say("f"))
		h.same("t", h.ids("t", 1, 0), []string{"a", "b", "f"})
		h.same("u", h.ids("u", 1, 0), []string{"a", "b", "e"})
		h.append("s", Answer("g", "c"))
	}},
}
