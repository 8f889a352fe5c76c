package pglog_test

import (
	"testing"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/pglog"
)

// TestLeaseOfAnEarlierClock: a lease does not last until the clock is where it was before it was set back.
func TestLeaseOfAnEarlierClock(t *testing.T) {
	needServer(t)
	dsn := server.Schema(t)
	gone, next := open(t, dsn, pglog.Options{}), open(t, dsn, pglog.Options{})
	defer closeStore(t, gone)
	defer closeStore(t, next)
	if _, err := gone.CreateSession(t.Context(), eventlog.Session{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		s   *pglog.Store
		has bool
	}{{gone, true}, {next, false}} {
		if has, err := step.s.Lease(t.Context(), "s", 0, "w", time.Hour); err != nil || has != step.has {
			t.Fatal(has, err)
		}
	}
	server.Exec(t, dsn, `UPDATE contextd_leases SET expires = expires + interval '5 hours'`)
	if has, err := next.Lease(t.Context(), "s", 0, "w", time.Hour); err != nil || !has {
		t.Errorf("a lease of an hour lasts for six: %v, %v", has, err)
	}
}
