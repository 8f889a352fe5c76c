package logtest

import (
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

var idempotencyCases = []testCase{
	{name: "a repeated batch returns the first receipts", run: func(h *harness) {
		h.append("s", Say("zero"))
		batch := []eventlog.Event{Say("a"), Call("b", "c"), Answer("d", "c")}
		first := h.append("s", batch...)
		h.append("s", Say("between"))
		before := h.session("s")
		again := h.append("s", batch...)
		for i := range first {
			first[i].Duplicate = true
		}
		h.same("receipts", again, first)
		h.same("session", h.session("s"), before)
	}},
	{name: "a receipt has the turn of a new event", run: func(h *harness) {
		var turns []uint32
		for _, r := range h.append("s", Say("a"), Call("b", "c"), Answer("d", "c"), Call("e", "f"), Say("a")) {
			turns = append(turns, r.Turn)
		}
		h.same("turns", turns, []uint32{0, 1, 1, 2, 0})
	}},
	{name: "the envelope takes no part", run: func(h *harness) {
		h.append("s", Say("a"))
		e := Say("a")
		e.Time, e.Tokens, e.Seq, e.Turn = e.Time.Add(time.Hour), eventlog.TokenCounts{Tokenizer: "t"}, 9, 9
		h.same("receipts", h.append("s", e), []eventlog.Receipt{{Seq: 1, EventID: "a", Duplicate: true}})
		h.same("time", h.read("s", 1, 1)[0].Time, epoch)
	}},
	{name: "an id with other content is a conflict and nothing is stored", run: func(h *harness) {
		h.append("s", Say("a"), Say("b"))
		labelled := Say("b")
		labelled.Labels = map[string]string{"k": "v"}
		for _, e := range []eventlog.Event{
			Message("b", eventlog.RoleUser, eventlog.Text{Text: "other"}),
			Message("b", eventlog.RoleSystem, eventlog.Text{Text: "b"}),
			labelled,
		} {
			_, err := h.tryAppend("s", eventlog.Batch{Events: []eventlog.Event{Say("new"), e}})
			h.fails(err, &eventlog.EventConflictError{EventID: "b", Index: 1, Seq: 2})
		}
		h.same("ids", h.ids("s", 1, 0), []string{"a", "b"})
	}},
	{name: "a batch may hold known and new events", run: func(h *harness) {
		h.append("s", Say("a"), Say("b"))
		h.same("receipts", h.append("s", Say("b"), Say("c"), Say("a"), Say("d")), []eventlog.Receipt{
			{Seq: 2, EventID: "b", Duplicate: true}, {Seq: 3, EventID: "c"},
			{Seq: 1, EventID: "a", Duplicate: true}, {Seq: 4, EventID: "d"},
		})
		h.same("ids", h.ids("s", 1, 0), []string{"a", "b", "c", "d"})
	}},
	{name: "an event twice in a batch is stored once", run: func(h *harness) {
		h.same("receipts", h.append("s", Say("a"), Say("b"), Say("a")), []eventlog.Receipt{
			{Seq: 1, EventID: "a"}, {Seq: 2, EventID: "b"}, {Seq: 1, EventID: "a", Duplicate: true},
		})
		_, err := h.tryAppend("s", eventlog.Batch{Events: []eventlog.Event{
			Say("c"), Message("c", eventlog.RoleUser, eventlog.Text{Text: "other"}),
		}})
		h.fails(err, &eventlog.EventConflictError{EventID: "c", Index: 1})
		h.same("ids", h.ids("s", 1, 0), []string{"a", "b"})
	}},
	{name: "duplicates succeed whatever the head is", run: func(h *harness) {
		h.append("s", Say("a"), Say("b"), Say("c"))
		try := func(expect eventlog.Seq, events ...eventlog.Event) error {
			_, err := h.tryAppend("s", eventlog.Batch{Events: events, ExpectedHead: &expect})
			return err
		}
		h.ok(try(0, Say("a")))
		h.ok(try(99, Say("c"), Say("a")))
		h.fails(try(0, Say("a"), Say("new")), &eventlog.HeadMismatchError{Expected: 0, Actual: 3})
		h.ok(try(3, Say("a"), Say("new")))
	}},
	{name: "a conflict is found before a wrong head", run: func(h *harness) {
		h.append("s", Say("a"))
		_, err := h.tryAppend("s", eventlog.Batch{ExpectedHead: seqp(9), Events: []eventlog.Event{
			Message("a", eventlog.RoleUser, eventlog.Text{Text: "other"}),
		}})
		h.fails(err, &eventlog.EventConflictError{EventID: "a", Seq: 1})
	}},
	{name: "ids belong to a session", run: func(h *harness) {
		h.append("s", Say("a"))
		h.same("receipts", h.append("t", Message("a", eventlog.RoleUser, eventlog.Text{Text: "other"})),
			[]eventlog.Receipt{{Seq: 1, EventID: "a"}})
	}},
	{name: "a duplicate of what is not durable yet waits for it", run: func(h *harness) {
		_, err := h.s.Append(h.Context(), "s", eventlog.Batch{Events: []eventlog.Event{Say("a")}})
		h.ok(err)
		h.append("s", Say("a"))
		h.same("head", h.session("s").Head, eventlog.Seq(1))
	}},
	{name: "a fork knows its parent's ids up to the fork", run: func(h *harness) {
		h.append("s", Say("a"), Say("b"), Say("c"))
		h.fork("s", 2, "t")
		h.fork("t", 1, "u")
		h.same("in the fork", h.append("t", Say("a"), Say("c"), Say("b")), []eventlog.Receipt{
			{Seq: 1, EventID: "a", Duplicate: true}, {Seq: 3, EventID: "c"}, {Seq: 2, EventID: "b", Duplicate: true},
		})
		_, err := h.tryAppend("t", eventlog.Batch{Events: []eventlog.Event{Answer("a", "none")}})
		h.fails(err, &eventlog.EventConflictError{EventID: "a", Seq: 1})
		h.same("in the fork's fork", h.append("u", Say("b"), Say("a")), []eventlog.Receipt{
			{Seq: 2, EventID: "b"}, {Seq: 1, EventID: "a", Duplicate: true},
		})
	}},
	{name: "ids are known after a restart", durable: true, run: func(h *harness) {
		e := Say("b")
		e.Tokens = eventlog.TokenCounts{Tokenizer: "t", Blocks: []uint32{3}}
		h.append("s", Say("a"), e)
		h.fork("s", 2, "t")
		h.reopen()
		for _, id := range []string{"s", "t"} {
			h.same("receipts", h.append(id, Say("b"), Say("c")), []eventlog.Receipt{
				{Seq: 2, EventID: "b", Duplicate: true, Tokens: e.Tokens}, {Seq: 3, EventID: "c"},
			})
		}
	}},
}
