package logtest

import (
	"context"
	"errors"
	"fmt"

	eventlog "github.com/contextd/contextd/internal/log"
)

var readCases = []testCase{
	{name: "ranges are what they say", run: func(h *harness) {
		const n = 700 // more than a store is likely to read at once
		var all []string
		var batch []eventlog.Event
		for i := range n {
			id := fmt.Sprintf("e%d", i+1)
			all, batch = append(all, id), append(batch, Say(id))
		}
		h.append("s", batch...)
		check := func() {
			h.same("all", h.ids("s", 0, 0), all)
			h.same("all from 1", h.ids("s", 1, 0), all)
			for _, from := range []eventlog.Seq{0, 1, 2, 5, 8, 9, 255, 699, 700, 701, 9999} {
				for _, to := range []eventlog.Seq{0, 1, 2, 8, 9, 300, 699, 700, 701, 9999} {
					first, last := max(from, 1), to
					if last == 0 || last > n {
						last = n
					}
					var want []string
					if first <= last {
						want = all[first-1 : last]
					}
					h.same(fmt.Sprintf("%d..%d", from, to), h.ids("s", from, to), want)
				}
			}
		}
		check()
		if h.o.reopen != nil {
			h.reopen()
			check()
		}
	}},
	{name: "runs are read together", run: func(h *harness) {
		h.fill("parent", 400)
		h.fork("parent", 250, "s")
		for i := range 900 {
			h.append("s", Say(fmt.Sprintf("s%d", i+1)))
		}
		for _, runs := range []eventlog.Ranges{
			nil, {{From: 1, To: 1}}, {{From: 1, To: 0}}, {{From: 3, To: 3}, {From: 5, To: 9}, {From: 200, To: 260}, {From: 262, To: 262}, {From: 1100, To: 1150}},
			{{From: 240, To: 250}, {From: 252, To: 252}}, {{From: 250, To: 1150}}, {{From: 0, To: 2}, {From: 1149, To: 5000}, {From: 6000, To: 6001}},
		} {
			var got, want []eventlog.Event
			for e, err := range eventlog.ReadRuns(h.Context(), h.s, "s", runs) {
				h.ok(err)
				got = append(got, e)
			}
			for _, r := range runs {
				if r.To >= r.From && r.From <= 1150 {
					want = append(want, h.read("s", r.From, r.To)...)
				}
			}
			h.same(fmt.Sprint(runs), got, want)
		}
		n, last := 0, error(nil)
		ctx, cancel := context.WithCancel(h.Context())
		defer cancel()
		for _, err := range eventlog.ReadRuns(ctx, h.s, "s", eventlog.Ranges{{From: 1, To: 3}, {From: 5, To: 9}}) {
			if n, last = n+1, err; n == 4 {
				cancel()
			}
		}
		if n != 5 || !errors.Is(last, context.Canceled) {
			h.Errorf("ended after %d: %v", n, last)
		}
		var errs []error
		for _, err := range eventlog.ReadRuns(h.Context(), h.s, "nobody", eventlog.Ranges{{From: 1, To: 1}, {From: 3, To: 3}}) {
			errs = append(errs, err)
		}
		if len(errs) != 1 {
			h.Fatalf("got %d items, want one error", len(errs))
		}
		h.fails(errs[0], eventlog.NoSession("nobody"))
	}},
	{name: "an empty log yields nothing", run: func(h *harness) {
		_, err := h.s.CreateSession(h.Context(), eventlog.Session{ID: "s"})
		h.ok(err)
		h.same("events", h.ids("s", 1, 0), []string(nil))
	}},
	{name: "an unknown session is an error, once", run: func(h *harness) {
		var errs []error
		for _, err := range h.s.Read(h.Context(), "s", 1, 0) {
			errs = append(errs, err)
		}
		if len(errs) != 1 {
			h.Fatalf("got %d items, want one error", len(errs))
		}
		h.fails(errs[0], eventlog.NoSession("s"))
	}},
	{name: "a read ends with its context, at the next event or artifact", run: func(h *harness) {
		h.fill("s", 30)
		for i := range 30 {
			h.put("s", eventlog.Artifact{Kind: "k", Seq: eventlog.Seq(i + 1), ID: "a"})
		}
		for at := 1; at < 30; at++ {
			ctx, cancel := context.WithCancel(h.Context())
			n, last := 0, error(nil)
			for _, err := range h.s.Read(ctx, "s", 1, 0) {
				if n, last = n+1, err; n == at {
					cancel()
				}
			}
			if n != at+1 || !errors.Is(last, context.Canceled) {
				h.Errorf("ended at event %d: %d and %v", at, n, last)
			}
			ctx, cancel = context.WithCancel(h.Context())
			n, last = 0, nil
			for _, err := range h.s.Artifacts(ctx, "s", eventlog.ArtifactQuery{Kind: "k"}) {
				if n, last = n+1, err; n == at {
					cancel()
				}
			}
			if n != at+1 || !errors.Is(last, context.Canceled) {
				h.Errorf("ended at artifact %d: %d and %v", at, n, last)
			}
			cancel()
		}
	}},
	{name: "a reader may stop at any event", run: func(h *harness) {
		h.fill("s", 30)
		for stop := 1; stop <= 30; stop++ {
			n := 0
			for e, err := range h.s.Read(h.Context(), "s", 1, 0) {
				h.ok(err)
				if n++; e.Seq == eventlog.Seq(stop) {
					break
				}
			}
			h.same("events seen", n, stop)
		}
	}},
	{name: "a sequence may be read twice", run: func(h *harness) {
		h.fill("s", 3)
		seq := h.s.Read(h.Context(), "s", 2, 0)
		first, err := Collect(seq)
		h.ok(err)
		h.append("s", Say("e4"))
		second, err := Collect(seq)
		h.ok(err)
		h.same("lengths", []int{len(first), len(second)}, []int{2, 3})
	}},
	{name: "a range ends where the head was, and the store is free meanwhile", run: func(h *harness) {
		h.fill("s", 40)
		n := 0
		for e, err := range h.s.Read(h.Context(), "s", 1, 0) {
			h.ok(err)
			n++
			// A reader that held the store would wait for itself here.
			h.append("s", Say(fmt.Sprintf("more %d", e.Seq)))
		}
		h.same("events seen", n, 40)
		h.same("head", h.session("s").Head, eventlog.Seq(80))
	}},
	{name: "turns are counted by model calls", run: func(h *harness) {
		part := func(id string) eventlog.Event {
			e := Call(id)
			e.Body.(*eventlog.Message).GroupID = "g"
			return e
		}
		h.append("s", Say("u"), part("a1"), part("a2"))
		h.append("s", Say("v"), part("a3"), Call("b"), Call("c"), part("d"))
		var turns []uint32
		for _, e := range h.read("s", 1, 0) {
			turns = append(turns, e.Turn)
		}
		h.same("turns", turns, []uint32{0, 1, 1, 1, 1, 2, 3, 4})
	}},
}
