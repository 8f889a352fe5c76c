package pglog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/pglog"
	"github.com/contextd/contextd/internal/log/pglog/pgtest"
)

func appendTo(t testing.TB, s eventlog.Store, id string, events ...eventlog.Event) ([]eventlog.Receipt, error) {
	t.Helper()
	c, err := s.Append(t.Context(), id, eventlog.Batch{Events: events})
	if err != nil {
		return nil, err
	}
	return c.Wait(t.Context())
}

func closeStore(t testing.TB, s *pglog.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// TestManyStores: the stores of several processes write to one session at once, and each of them
// sees the same log; also where the server runs each transaction as if it were alone.
func TestManyStores(t *testing.T) {
	needServer(t)
	for _, isolation := range []string{"read committed", "serializable"} {
		t.Run(isolation, func(t *testing.T) {
			manyStores(t, server.Schema(t)+" default_transaction_isolation='"+isolation+"'")
		})
	}
}

func manyStores(t *testing.T, dsn string) {
	const processes, events = 4, 25
	var all []*pglog.Store
	for range processes {
		s := open(t, dsn, pglog.Options{Attempts: 200, MaxConnections: 2})
		t.Cleanup(func() { closeStore(t, s) })
		all = append(all, s)
	}
	var wg sync.WaitGroup
	for n, s := range all {
		wg.Go(func() {
			for i := range events {
				e := logtest.Say(fmt.Sprintf("p%d %d", n, i))
				for range 2 { // the second time a duplicate
					if _, err := appendTo(t, s, "s", e); err != nil {
						t.Errorf("append: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	var first []eventlog.Event
	var chain []byte
	for n, s := range all {
		got, err := logtest.Collect(s.Read(t.Context(), "s", 1, 0))
		if err != nil || len(got) != processes*events {
			t.Fatalf("store %d reads %d events: %v", n, len(got), err)
		}
		head, err := s.ChainHead(t.Context(), "s", processes*events)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			first, chain = got, head
		}
		if diff := logtest.Diff(first, got); diff != "" || string(chain) != string(head) {
			t.Errorf("store %d reads another log: %s", n, diff)
		}
		if err := s.Verify(t.Context(), "s"); err != nil {
			t.Error(err)
		}
	}
}

// TestWaitAcrossStores: a waiter learns of what another process writes and deletes, by
// notification long before it asks again, and by asking where there are no notifications.
func TestWaitAcrossStores(t *testing.T) {
	needServer(t)
	for name, poll := range map[string]time.Duration{"notified": time.Hour, "asking": 10 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			dsn := server.Schema(t)
			writer := open(t, dsn, pglog.Options{})
			defer closeStore(t, writer)
			if _, err := appendTo(t, writer, "s", logtest.Say("a")); err != nil {
				t.Fatal(err)
			}
			reader := open(t, dsn, pglog.Options{Poll: poll})
			defer closeStore(t, reader)
			reader.Listening(t.Context())
			if name == "asking" {
				server.Exec(t, dsn, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'LISTEN contextd'`)
			}
			past := make(chan error)
			go func() {
				_, err := reader.WaitPast(t.Context(), "s", 1)
				past <- err
				_, err = reader.WaitPast(t.Context(), "s", 2)
				past <- err
			}()
			if _, err := appendTo(t, writer, "s", logtest.Say("b")); err != nil {
				t.Fatal(err)
			}
			if err := <-past; err != nil {
				t.Error(err)
			}
			if err := writer.DeleteSession(t.Context(), "s", 0, nil); err != nil {
				t.Fatal(err)
			}
			if err := <-past; !errors.As(err, new(*eventlog.NotFoundError)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestSetBack: no number is given twice although the database was set back to an earlier state, by a backup for
// example. So processes do not take each other's leases for their own, nor clients a new session for one that was lost.
func TestSetBack(t *testing.T) {
	needServer(t)
	dsn := server.Schema(t)
	before := open(t, dsn, pglog.Options{Migrate: true})
	defer closeStore(t, before)
	create := func(s *pglog.Store, id string) eventlog.Session {
		made, err := s.CreateSession(t.Context(), eventlog.Session{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	create(before, "s")
	server.Exec(t, dsn, `CREATE TABLE saved AS SELECT last_value FROM contextd_incarnations`)
	lost := create(before, "lost")
	if has, err := before.Lease(t.Context(), "s", 0, "work", time.Hour); err != nil || !has {
		t.Fatal(has, err)
	}
	server.Exec(t, dsn, `DELETE FROM contextd_sessions WHERE id = 'lost';
		DELETE FROM contextd_shares WHERE incarnation NOT IN (SELECT incarnation FROM contextd_sessions); SELECT setval('contextd_incarnations', 1, false)`)
	after := open(t, dsn, pglog.Options{})
	defer closeStore(t, after)
	if has, err := after.Lease(t.Context(), "s", 0, "work", time.Hour); err != nil || has {
		t.Errorf("another process has the lease as well: %v, %v", has, err)
	}
	server.Exec(t, dsn, `SELECT setval('contextd_incarnations', last_value) FROM saved`)
	if again := create(after, "lost"); again.Incarnation == lost.Incarnation {
		t.Errorf("a new session is taken for the one that was lost: %v", again.Incarnation)
	}
}

// TestLeases: of several processes one has a piece of work, until it gives it up or the database's
// clock says that its time is over.
func TestLeases(t *testing.T) {
	needServer(t)
	dsn := server.Schema(t)
	one, other := open(t, dsn, pglog.Options{}), open(t, dsn, pglog.Options{})
	defer closeStore(t, one)
	defer closeStore(t, other)
	if _, err := one.CreateSession(t.Context(), eventlog.Session{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	lease := func(s *pglog.Store, work string, d time.Duration) bool {
		t.Helper()
		has, err := s.Lease(t.Context(), "s", 0, work, d)
		if err != nil {
			t.Fatal(err)
		}
		return has
	}
	if !lease(one, "w", time.Hour) || lease(other, "w", time.Hour) || !lease(other, "v", time.Hour) || !lease(one, "w", time.Hour) {
		t.Error("the first to ask does not have it alone")
	}
	if err := other.Release(t.Context(), "s", 0, "w"); err != nil || lease(other, "w", time.Hour) {
		t.Errorf("it was released by another: %v", err)
	}
	if err := one.Release(t.Context(), "s", 0, "w"); err != nil || !lease(other, "w", 0) {
		t.Errorf("it was released, and not granted: %v", err)
	}
	if !lease(one, "w", time.Hour) {
		t.Error("what is over is not granted")
	}
	won := make(chan bool, 20)
	var wg sync.WaitGroup
	for i := range cap(won) {
		wg.Go(func() { won <- lease([]*pglog.Store{one, other}[i%2], "x", time.Hour) })
	}
	wg.Wait()
	close(won)
	granted := 0
	for has := range won {
		if has {
			granted++
		}
	}
	if granted != cap(won)/2 {
		t.Errorf("granted %d times, want those of one process", granted)
	}
	if err := one.DeleteSession(t.Context(), "s", 0, nil); err != nil {
		t.Fatal(err)
	}
	if n := count(t, dsn, "leases"); n != 0 {
		t.Errorf("%d rows outlive the session", n)
	}
}

// TestDeletionLeavesNoRow, whatever the order in which a family goes, and where several go at once.
func TestDeletionLeavesNoRow(t *testing.T) {
	needServer(t)
	dsn := server.Schema(t)
	s := open(t, dsn, pglog.Options{Attempts: 100})
	defer closeStore(t, s)
	for round := range 5 {
		for _, id := range []string{"a", "b", "c", "d"} {
			if id != "a" {
				if _, err := s.Fork(t.Context(), eventlog.ForkRequest{ParentID: string(id[0] - 1), At: 2, NewID: id}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := appendTo(t, s, id, logtest.Say(id+"1"), logtest.Say(id+"2")); err != nil {
				t.Fatal(err)
			}
			for _, value := range []string{"first", "second"} {
				if err := s.PutArtifacts(t.Context(), id, eventlog.Artifact{Kind: "k", Seq: 1, ID: "i", Value: []byte(value)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		var wg sync.WaitGroup
		for _, id := range []string{"a", "b", "c", "d"} {
			wg.Go(func() {
				if err := s.DeleteSession(t.Context(), id, 0, nil); err != nil {
					t.Errorf("delete %s: %v", id, err)
				}
			})
		}
		wg.Wait()
		for _, table := range []string{"sessions", "shares", "events", "artifacts"} {
			if n := count(t, dsn, table); n != 0 {
				t.Errorf("round %d: contextd_%s has %d rows left", round, table, n)
			}
		}
	}
}

func count(t *testing.T, dsn, table string) int {
	t.Helper()
	return query(t, dsn, `SELECT count(*) FROM contextd_`+table)
}

func sequence(t *testing.T, dsn, name string) int {
	t.Helper()
	return query(t, dsn, `SELECT last_value FROM `+name)
}

// query returns the number that a query yields.
func query(t *testing.T, dsn, sql string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestVerify: rows that somebody changed, dropped or moved are found.
func TestVerify(t *testing.T) {
	needServer(t)
	for _, c := range []struct{ sql, says string }{
		{`UPDATE contextd_events SET record = record || '\x7801'::bytea WHERE seq = 2`, `event 2 is corrupt: the hash chain breaks`},
		{`UPDATE contextd_events SET head = (SELECT head FROM contextd_events WHERE seq = 1) WHERE seq = 2`, `event 2 is corrupt: the hash chain breaks`},
		{`DELETE FROM contextd_events WHERE seq = 2`, `event 2 is corrupt: it is missing`},
		{`DELETE FROM contextd_events`, `event 1 is corrupt: it is missing`},
		{`UPDATE contextd_sessions SET head = 2`, `its head does not follow from its events`},
	} {
		dsn := server.Schema(t)
		s := open(t, dsn, pglog.Options{})
		if _, err := appendTo(t, s, "s", logtest.Say("a"), logtest.Say("b"), logtest.Say("c")); err != nil {
			t.Fatal(err)
		}
		if err := s.Verify(t.Context(), "s"); err != nil {
			t.Error(err)
		}
		server.Exec(t, dsn, c.sql)
		err := s.Verify(t.Context(), "s")
		if !errors.As(err, new(*eventlog.CorruptError)) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.sql, err)
		}
		closeStore(t, s)
	}
}

// TestWarnsOfLoss: whoever runs a database that acknowledges what it may lose learns so.
func TestWarnsOfLoss(t *testing.T) {
	needServer(t)
	for mode, warns := range map[string]bool{"off": true, "local": false, "on": false} {
		var log strings.Builder
		s := open(t, server.Schema(t)+" synchronous_commit="+mode, pglog.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		closeStore(t, s)
		if got := strings.Contains(log.String(), "synchronous_commit=off"); got != warns {
			t.Errorf("with %s: %s", mode, log.String())
		}
	}
}

// TestCutConnections: where the database ends the connections, the store goes on without being
// opened again, and nothing that was acknowledged is lost.
func TestCutConnections(t *testing.T) {
	needServer(t)
	dsn := server.Schema(t)
	s := open(t, dsn, pglog.Options{Poll: 10 * time.Millisecond})
	defer closeStore(t, s)
	const n = 30
	for i := range n {
		if i%3 == 0 {
			server.Exec(t, dsn, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'`)
		}
		for {
			_, err := appendTo(t, s, "s", logtest.Say(fmt.Sprint(i)))
			if err == nil {
				break
			}
			var passing *eventlog.UnavailableError
			if !errors.As(err, &passing) || !passing.Passing {
				t.Fatal(err)
			}
		}
	}
	got, err := logtest.Collect(s.Read(t.Context(), "s", 1, 0))
	if err != nil || len(got) != n {
		t.Fatalf("%d events, %v", len(got), err)
	}
	s.Listening(t.Context())
	if err := s.Healthy(); err != nil {
		t.Errorf("unhealthy after the connection is back: %v", err)
	}
}

// TestNothingListensThroughAPooler: a connection of the server's that listens is of whoever has it next.
func TestNothingListensThroughAPooler(t *testing.T) {
	needServer(t)
	bouncer := pgtest.StartBouncer(t, server)
	dsn := bouncer.DSN(server.SchemaRole(t))
	s := open(t, dsn, pglog.Options{})
	defer closeStore(t, s)
	s.Listening(t.Context())
	for range pgtest.BouncerPool { // a transaction of each keeps all of them
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var channels int
		if err := tx.QueryRow(t.Context(), `SELECT count(*) FROM pg_listening_channels()`).Scan(&channels); err != nil || channels != 0 {
			t.Errorf("a connection listens on %d channels, %v", channels, err)
		}
	}
}
