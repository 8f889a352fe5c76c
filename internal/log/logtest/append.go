package logtest

import (
	"context"
	"fmt"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

func seqp(s eventlog.Seq) *eventlog.Seq { return &s }

var appendCases = []testCase{
	{name: "the first append makes the session", run: func(h *harness) {
		h.same("receipts", h.append("s", Say("a"), Say("b")), []eventlog.Receipt{{Seq: 1, EventID: "a"}, {Seq: 2, EventID: "b"}})
		h.same("next", h.append("s", Say("c")), []eventlog.Receipt{{Seq: 3, EventID: "c"}})
		h.same("head", h.session("s").Head, eventlog.Seq(3))
	}},
	{name: "events come back as they were", run: func(h *harness) {
		kinds := Kinds()
		for _, e := range kinds[:4] {
			h.append("s", e)
		}
		h.append("s", kinds[4:]...)
		check := func() {
			got := h.read("s", 1, 0)
			if len(got) != len(kinds) {
				h.Fatalf("got %d events, want %d", len(got), len(kinds))
			}
			for i, want := range kinds {
				want.Seq, want.Time = eventlog.Seq(i+1), want.Time.UTC()
				if i > 0 {
					want.Turn = 1
				}
				h.same(want.ID, got[i], want)
				if eventlog.Digest(got[i]) != eventlog.Digest(want) {
					h.Errorf("the digest of %q changed", want.ID)
				}
			}
		}
		check()
		if h.o.reopen != nil {
			h.reopen()
			check()
		}
	}},
	{name: "receipts carry the token counts", run: func(h *harness) {
		e := Say("a")
		e.Tokens = eventlog.TokenCounts{Tokenizer: "t", Blocks: []uint32{5}}
		want := []eventlog.Receipt{{Seq: 1, EventID: "a", Tokens: e.Tokens}}
		h.same("first", h.append("s", e), want)
		want[0].Duplicate = true
		// Those of the first time, whatever is said later.
		e.Tokens = eventlog.TokenCounts{Tokenizer: "u", Blocks: []uint32{6}}
		h.same("again", h.append("s", e), want)
	}},
	{name: "a bad event stops the whole batch and is named", run: func(h *harness) {
		bad := []struct {
			field string
			event eventlog.Event
		}{
			{"event_id", Say("")},
			{"event_id", Say("\xff")},
			{"kind", eventlog.Event{ID: "x"}},
			{"kind", eventlog.Event{ID: "x", Body: (*eventlog.Message)(nil)}},
			{"message.blocks", Message("x", eventlog.RoleUser)},
			{"message.blocks[0].text.text", Message("x", eventlog.RoleUser, eventlog.Text{Text: "\xff"})},
			{"message.blocks[0].tool_result.call_id", Answer("x", "unknown")},
			{"reminder.body", eventlog.Event{ID: "x", Body: &eventlog.Reminder{}}},
		}
		h.append("s", Say("first"))
		before := h.session("s")
		for _, b := range bad {
			_, err := h.tryAppend("s", eventlog.Batch{Events: []eventlog.Event{Say("good"), b.event}})
			h.failsOn(err, "events[1]."+b.field)
			_, err = h.tryAppend("none", eventlog.Batch{Events: []eventlog.Event{b.event}})
			h.failsOn(err, "events[0]."+b.field)
		}
		h.same("session", h.session("s"), before)
		_, err := h.s.Session(h.Context(), "none")
		h.fails(err, eventlog.NoSession("none"))
	}},
	{name: "an event is named by its place in the batch, duplicates counted", run: func(h *harness) {
		h.append("s", Say("a"))
		_, err := h.tryAppend("s", eventlog.Batch{Events: []eventlog.Event{Say("a"), Say("b"), Say("b"), Answer("x", "none")}})
		h.failsOn(err, "events[3].message.blocks[0].tool_result.call_id")
	}},
	{name: "a batch is not empty", run: func(h *harness) {
		_, err := h.tryAppend("s", eventlog.Batch{})
		h.failsOn(err, "events")
		_, err = h.tryAppend("", eventlog.Batch{Events: []eventlog.Event{Say("a")}})
		h.failsOn(err, "session_id")
	}},
	{name: "calls and results may share a batch or not", run: func(h *harness) {
		h.append("s", Call("a", "c1", "c2"), Answer("b", "c2"))
		h.append("s", Answer("c", "c1"))
		_, err := h.tryAppend("s", eventlog.Batch{Events: []eventlog.Event{Answer("d", "c1")}})
		h.failsOn(err, "events[0].message.blocks[0].tool_result.call_id")
		h.same("turns", h.session("s").Turns, uint32(1))
	}},
	{name: "expected_head must be the head", run: func(h *harness) {
		try := func(expect eventlog.Seq, events ...eventlog.Event) error {
			_, err := h.tryAppend("s", eventlog.Batch{Events: events, ExpectedHead: &expect})
			return err
		}
		h.fails(try(1, Say("a")), &eventlog.HeadMismatchError{Expected: 1, Actual: 0})
		h.ok(try(0, Say("a"), Say("b")))
		h.fails(try(0, Say("c")), &eventlog.HeadMismatchError{Expected: 0, Actual: 2})
		h.fails(try(3, Say("c")), &eventlog.HeadMismatchError{Expected: 3, Actual: 2})
		h.ok(try(2, Say("c")))
		h.same("ids", h.ids("s", 1, 0), []string{"a", "b", "c"})
	}},
	{name: "expected_head counts batches that are not durable yet", run: func(h *harness) {
		first, err := h.s.Append(h.Context(), "s", eventlog.Batch{Events: []eventlog.Event{Say("a")}})
		h.ok(err)
		second, err := h.s.Append(h.Context(), "s", eventlog.Batch{Events: []eventlog.Event{Say("b")}, ExpectedHead: seqp(1)})
		h.ok(err)
		r, err := second.Wait(h.Context())
		h.ok(err)
		h.same("second", r, []eventlog.Receipt{{Seq: 2, EventID: "b"}})
		h.same("head once the second is durable", h.session("s").Head, eventlog.Seq(2))
		r, err = first.Wait(h.Context())
		h.ok(err)
		h.same("first", r, []eventlog.Receipt{{Seq: 1, EventID: "a"}})
	}},
	{name: "an append need not be waited for", run: func(h *harness) {
		_, err := h.s.Append(h.Context(), "s", eventlog.Batch{Events: []eventlog.Event{Say("a")}})
		h.ok(err)
		// Its session comes into being all the same.
		h.append("t", Say("later"))
		h.append("s", Say("b"))
		h.same("ids", h.ids("s", 1, 0), []string{"a", "b"})
	}},
	{name: "a cancelled context stops an append before it begins", run: func(h *harness) {
		ctx, cancel := context.WithCancel(h.Context())
		cancel()
		_, err := h.s.Append(ctx, "s", eventlog.Batch{Events: []eventlog.Event{Say("a")}})
		h.fails(err, context.Canceled)
		_, err = h.s.Session(h.Context(), "s")
		h.fails(err, eventlog.NoSession("s"))
	}},
	{name: "a cancelled wait ends the wait, not the append", run: func(h *harness) {
		c, err := h.s.Append(h.Context(), "s", eventlog.Batch{Events: []eventlog.Event{Say("a")}})
		h.ok(err)
		ctx, cancel := context.WithCancel(h.Context())
		cancel()
		if _, err := c.Wait(ctx); err != nil {
			h.fails(err, context.Canceled)
		}
		h.same("a repeated append", h.append("s", Say("a")), []eventlog.Receipt{{Seq: 1, EventID: "a", Duplicate: true}})
	}},
	{name: "events of any size are taken", run: func(h *harness) {
		sizes := []int{0, 1, 511, 512, 513, 4095, 32 << 10, 1 << 20, 16 << 20}
		for i, size := range sizes {
			text := strings.Repeat(fmt.Sprintf("%08d", i), size/8+1)[:size]
			h.append("s", Message(fmt.Sprint(i), eventlog.RoleUser, eventlog.Text{Text: text}))
		}
		check := func() {
			for i, e := range h.read("s", 1, 0) {
				text := e.Body.(*eventlog.Message).Blocks[0].(eventlog.Text).Text
				if len(text) != sizes[i] || strings.Trim(text, fmt.Sprint(i)+"0") != "" {
					h.Errorf("event %d of %d bytes came back changed, with %d", i, sizes[i], len(text))
				}
			}
		}
		check()
		if h.o.reopen != nil {
			h.reopen()
			check()
		}
	}},
	{name: "a batch of many events is one batch", run: func(h *harness) {
		var batch []eventlog.Event
		for i := range 3000 {
			batch = append(batch, Say(fmt.Sprintf("m%04d", i)))
		}
		receipts := h.append("s", batch...)
		h.same("last receipt", receipts[2999], eventlog.Receipt{Seq: 3000, EventID: "m2999"})
		h.same("length", len(h.ids("s", 1, 0)), 3000)
	}},
}
