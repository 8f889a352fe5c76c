package logtest

import (
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// The suite opens a store once. The stores' own tests show what several processes get.
var leaseCases = []testCase{
	{name: "a process keeps what it has", run: func(h *harness) {
		session, err := h.s.CreateSession(h.Context(), eventlog.Session{ID: "s"})
		h.ok(err)
		for _, of := range []eventlog.Incarnation{0, session.Incarnation} {
			for range 2 {
				has, err := h.s.Lease(h.Context(), "s", of, "w", time.Hour)
				h.ok(err)
				h.same("granted", has, true)
			}
			h.ok(h.s.Release(h.Context(), "s", of, "w"))
			h.ok(h.s.Release(h.Context(), "s", of, "w"))
		}
	}},
	{name: "a lease is of a session that is there", run: func(h *harness) {
		_, err := h.s.Lease(h.Context(), "s", 0, "w", time.Hour)
		h.fails(err, eventlog.NoSession("s"))
		session, err := h.s.CreateSession(h.Context(), eventlog.Session{ID: "s"})
		h.ok(err)
		_, err = h.s.Lease(h.Context(), "s", session.Incarnation+1, "w", time.Hour)
		h.fails(err, eventlog.NoSession("s"))
		h.ok(h.s.DeleteSession(h.Context(), "s", 0, nil))
		_, err = h.s.Lease(h.Context(), "s", session.Incarnation, "w", time.Hour)
		h.fails(err, eventlog.NoSession("s"))
	}},
	{name: "a session with a lease can be deleted", run: func(h *harness) {
		_, err := h.s.CreateSession(h.Context(), eventlog.Session{ID: "s"})
		h.ok(err)
		_, err = h.s.Lease(h.Context(), "s", 0, "w", time.Hour)
		h.ok(err)
		h.ok(h.s.DeleteSession(h.Context(), "s", 0, nil))
		_, err = h.s.Session(h.Context(), "s")
		h.fails(err, eventlog.NoSession("s"))
	}},
}
