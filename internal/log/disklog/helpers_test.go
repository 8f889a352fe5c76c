package disklog_test

import (
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
)

func appendTo(t testing.TB, s eventlog.Store, id string, events ...eventlog.Event) ([]eventlog.Receipt, error) {
	t.Helper()
	c, err := s.Append(t.Context(), id, eventlog.Batch{Events: events})
	if err != nil {
		return nil, err
	}
	return c.Wait(t.Context())
}

func mustAppend(t testing.TB, s eventlog.Store, id string, events ...eventlog.Event) {
	t.Helper()
	if _, err := appendTo(t, s, id, events...); err != nil {
		t.Errorf("append to %s: %v", id, err)
	}
}

func verifyAll(t testing.TB, s *disklog.Store) {
	t.Helper()
	all, err := s.ListSessions(t.Context(), eventlog.SessionQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, session := range all {
		if err := s.Verify(t.Context(), session.ID); err != nil {
			t.Errorf("verify %s: %v", session.ID, err)
		}
	}
}
