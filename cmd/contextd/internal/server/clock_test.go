package server_test

import (
	"testing"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestClockSetBack: what is used while the clock is wrong does not look old, so that it is not deleted too early.
func TestClockSetBack(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		updated := func(id string) time.Time {
			t.Helper()
			got, err := a.GetSession(t.Context(), &contextdv1.GetSessionRequest{SessionId: id})
			if err != nil {
				t.Fatal(err)
			}
			return got.GetSession().GetUpdateTime().AsTime()
		}
		a.append(t, "s", user("one"))
		before := updated("s")
		a.clock.seconds.Add(-1_000_000)
		a.append(t, "s", user("two"))
		if now := updated("s"); now.Before(before) {
			t.Errorf("an append made the session older: %s, before %s", now, before)
		}
		if _, err := a.ForkSession(t.Context(), &contextdv1.ForkSessionRequest{SessionId: "s", NewSessionId: "fork"}); err != nil {
			t.Fatal(err)
		}
		if now := updated("fork"); now.Before(before) {
			t.Errorf("a fork is older than its parent: %s, before %s", now, before)
		}
		a.clock.seconds.Add(2_000_000)
		a.append(t, "s", user("three"))
		if now := updated("s"); !now.After(before) {
			t.Errorf("with a right clock the session is of %s, before %s", now, before)
		}
	})
}
