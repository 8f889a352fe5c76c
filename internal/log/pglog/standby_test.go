package pglog_test

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/pglog"
	"github.com/contextd/contextd/internal/log/pglog/pgtest"
)

// TestUnconfirmed: while the synchronous standby is away no write is acknowledged, although the
// primary shows it once somebody gave up waiting for the standby, or the primary was started again; nor is it
// when the call is repeated. So what a standby has that takes over is all that was acknowledged.
func TestUnconfirmed(t *testing.T) {
	primary, standby := pgtest.Pair(t)
	if primary == nil {
		needServer(t)
	}
	dsn := pgtest.AnyDSN(primary, standby)
	if err := pglog.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	impatient, err := pglog.Open(t.Context(), dsn, pglog.Options{Timeout: 2 * time.Second, Poll: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, impatient)
	patient, err := pglog.Open(t.Context(), dsn, pglog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, patient)
	for _, id := range []string{"parent", "deleted"} {
		if _, err := patient.CreateSession(t.Context(), eventlog.Session{ID: id}); err != nil {
			t.Fatal(err)
		}
	}

	isThere := func(s *pglog.Store, id string) bool {
		for {
			found, err := s.Session(t.Context(), id)
			switch {
			case err == nil:
				return id == "deleted" || id == "forked" || id == "created" || found.Head == 1
			case errors.As(err, new(*eventlog.NotFoundError)):
				return false
			}
		}
	}
	append1 := func(id string) func(*pglog.Store) error {
		return func(s *pglog.Store) error { _, err := appendTo(t, s, id, logtest.Say("a")); return err }
	}
	exists := func(err error) bool { return errors.As(err, new(*eventlog.ExistsError)) }
	calls := []struct {
		session string
		call    func(s *pglog.Store) error
		// acknowledged reports whether a repeated call says that the first one is stored.
		acknowledged func(error) bool
		of           *pglog.Store
	}{
		{"appended", append1("appended"), nil, impatient},
		{"created", func(s *pglog.Store) error {
			_, err := s.CreateSession(t.Context(), eventlog.Session{ID: "created"})
			return err
		}, exists, impatient},
		{"forked", func(s *pglog.Store) error {
			_, err := s.Fork(t.Context(), eventlog.ForkRequest{ParentID: "parent", NewID: "forked"})
			return err
		}, exists, impatient},
		{"deleted", func(s *pglog.Store) error { return s.DeleteSession(t.Context(), "deleted", 0, nil) },
			func(err error) bool { return errors.As(err, new(*eventlog.NotFoundError)) }, impatient},
		{"cancelled", append1("cancelled"), nil, patient},
		{"restarted", append1("restarted"), nil, patient},
	}
	// each makes all calls at once, and returns those that are acknowledged.
	each := func(which func(n int) *pglog.Store) []bool {
		acknowledged := make([]bool, len(calls))
		var wg sync.WaitGroup
		for n, c := range calls {
			if s := which(n); s != nil {
				wg.Go(func() {
					err := c.call(s)
					acknowledged[n] = err == nil || c.acknowledged != nil && c.acknowledged(err)
				})
			}
		}
		wg.Wait()
		return acknowledged
	}

	standby.Crash()
	interrupted := make(chan struct{})
	go func() {
		defer close(interrupted)
		waiting := `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%contextd_events%')`
		primary.Await(t, waiting)
		for !isThere(impatient, "appended") { // until those that are impatient gave up
			runtime.Gosched()
		}
		primary.Exec(t, dsn, `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid IN
			(SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' ORDER BY xact_start LIMIT 1)`)
		for !isThere(impatient, "cancelled") && !isThere(impatient, "restarted") {
			runtime.Gosched()
		}
		primary.Crash()
		if err := primary.Launch(); err != nil {
			t.Error(err)
		}
	}()
	for n, yes := range each(func(n int) *pglog.Store { return calls[n].of }) {
		if yes {
			t.Errorf("%s: the first call is acknowledged", calls[n].session)
		}
	}
	<-interrupted
	for _, c := range calls {
		if isThere(impatient, c.session) == (c.session == "deleted") {
			t.Errorf("%s: the primary does not show it, so this test shows nothing", c.session)
		}
	}
	for impatient.Healthy() == nil {
		runtime.Gosched() // until it is found out that nothing is confirmed
	}
	for n, yes := range each(func(int) *pglog.Store { return impatient }) {
		if yes {
			t.Errorf("%s: the repeated call is acknowledged", calls[n].session)
		}
	}

	if err := standby.Launch(); err != nil {
		t.Fatal(err)
	}
	done := make([]bool, len(calls))
	for slices.Contains(done, false) {
		now := each(func(n int) *pglog.Store {
			if done[n] {
				return nil
			}
			return impatient
		})
		for n := range done {
			done[n] = done[n] || now[n]
		}
	}
	for impatient.Healthy() != nil {
		runtime.Gosched()
	}
	primary.Kill()
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		if isThere(impatient, c.session) == (c.session == "deleted") {
			t.Errorf("%s: what was acknowledged is not on the standby", c.session)
		}
	}
}
