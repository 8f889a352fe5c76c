package logtest

import (
	"bytes"
	"context"
	"fmt"

	eventlog "github.com/contextd/contextd/internal/log"
)

// chainCases are for stores without a chain, too, except for the cases that need one.
var chainCases = []testCase{
	{name: "the chain after an event stays what it was when that was the newest", run: func(h *harness) {
		h.same("empty log", h.chainless("none"), true)
		var heads [][]byte
		for _, id := range []string{"a", "b", "c", "d"} {
			h.append("s", Say(id))
			heads = append(heads, h.session("s").ChainHead)
		}
		check := func() {
			h.Helper()
			for i, want := range heads {
				h.same("chain", h.chain("s", eventlog.Seq(i+1)), want)
			}
			h.same("chain at 0", h.chain("s", 0), []byte(nil))
			h.same("listed", h.listed("s"), heads[len(heads)-1])
		}
		check()
		if h.o.reopen != nil {
			h.reopen()
			check()
		}
	}},
	{name: "the chain depends on every event before", needs: needsChain, run: func(h *harness) {
		h.append("s", Say("a"), Say("b"))
		h.append("t", Say("x"), Say("b"))
		h.append("u", Say("b"), Say("a"))
		all := map[string]string{}
		for _, id := range []string{"s", "t", "u"} {
			for seq := range eventlog.Seq(3) {
				chain := string(h.chain(id, seq))
				if at := fmt.Sprintf("%s/%d", id, seq); seq > 0 && (chain == "" || all[chain] != "") {
					h.Fatalf("the chain at %s is %x, and %q has it", at, chain, all[chain])
				}
				all[chain] = id
			}
		}
	}},
	{name: "a fork's own events are in its chain", needs: needsChain, run: func(h *harness) {
		h.append("s", Say("a"), Say("b"))
		h.fork("s", 1, "t")
		h.append("t", Say("c"))
		if chain := h.chain("t", 2); bytes.Equal(chain, h.chain("t", 1)) || bytes.Equal(chain, h.chain("s", 2)) {
			h.Fatalf("the fork's chain is %x", chain)
		}
	}},
	{name: "a fork has its parent's chain and goes on from it", run: func(h *harness) {
		h.append("s", Say("a"), Say("b"), Say("c"))
		at2 := h.chain("s", 2)
		h.same("fork", h.fork("s", 2, "t").ChainHead, at2)
		h.same("read back", h.session("t").ChainHead, at2)
		h.append("t", Say("d"))
		h.same("shared", [][]byte{h.chain("t", 1), h.chain("t", 2)}, [][]byte{h.chain("s", 1), at2})
		h.ok(h.s.DeleteSession(h.Context(), "s", 0, nil))
		h.same("without the parent", h.chain("t", 2), at2)
	}},
	{name: "existing events have a chain", run: func(h *harness) {
		h.append("s", Say("a"))
		_, err := h.s.ChainHead(h.Context(), "s", 2)
		h.fails(err, eventlog.NoEvent(2))
		_, err = h.s.ChainHead(h.Context(), "t", 0)
		h.fails(err, eventlog.NoSession("t"))
		ctx, cancel := context.WithCancel(h.Context())
		cancel()
		_, err = h.s.ChainHead(ctx, "s", 1)
		h.fails(err, context.Canceled)
		h.same("stated", len(h.chain("s", 1)) > 0, h.s.Capabilities().Chain)
	}},
}

func (h *harness) chain(id string, seq eventlog.Seq) []byte {
	h.Helper()
	chain, err := h.s.ChainHead(h.Context(), id, seq)
	h.ok(err)
	return chain
}

// chainless makes an empty session and reports whether it has no chain.
func (h *harness) chainless(id string) bool {
	h.Helper()
	made, err := h.s.CreateSession(h.Context(), eventlog.Session{ID: id})
	h.ok(err)
	return made.ChainHead == nil && h.session(id).ChainHead == nil && h.chain(id, 0) == nil
}

// listed returns the chain of a session from ListSessions.
func (h *harness) listed(id string) []byte {
	h.Helper()
	all, err := h.s.ListSessions(h.Context(), eventlog.SessionQuery{})
	h.ok(err)
	for _, s := range all {
		if s.ID == id {
			return s.ChainHead
		}
	}
	h.Fatalf("session %s is not listed", id)
	return nil
}
