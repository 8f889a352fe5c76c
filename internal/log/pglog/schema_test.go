package pglog_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/pglog"
)

// TestMigrateAtOnce: of ten processes that start on an empty schema each finds it complete.
func TestMigrateAtOnce(t *testing.T) {
	needServer(t)
	dsn := server.Schema(t)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			s, err := pglog.Open(t.Context(), dsn, pglog.Options{Migrate: true, MaxConnections: 1})
			if err != nil {
				t.Error(err)
				return
			}
			defer closeStore(t, s)
			if _, err := appendTo(t, s, "s", logtest.Say("a")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := count(t, dsn, "schema"); n != 1+pglog.Newest {
		t.Errorf("the table of migrations has %d rows, want that of the empty schema and %d", n, pglog.Newest)
	}
}

// TestMigrateWaits: a process waits for another one's migration, however long that takes.
func TestMigrateWaits(t *testing.T) {
	needServer(t)
	dsn := server.Schema(t)
	other, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(t.Context())
	tx, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `CREATE TABLE contextd_schema (version bigint PRIMARY KEY, name text NOT NULL, applied timestamptz NOT NULL DEFAULT now())`); err != nil {
		t.Fatal(err)
	}
	opened := make(chan error)
	go func() {
		s, err := pglog.Open(t.Context(), dsn, pglog.Options{Migrate: true, Timeout: time.Second})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	server.Await(t, `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE query LIKE 'CREATE TABLE IF NOT EXISTS contextd_schema%'
		AND wait_event_type = 'Lock' AND now() - query_start > '1500 ms') OR NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock')
		AND EXISTS (SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction' AND now() - state_change > '3 s')`)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// TestSchemaGone: a store without its tables, as in an empty database that took the place of the one it was opened on,
// does not take writes, says why, and goes on once they are there.
func TestSchemaGone(t *testing.T) {
	needServer(t)
	dsn := server.Schema(t)
	s := open(t, dsn, pglog.Options{Migrate: true, Poll: 10 * time.Millisecond})
	defer closeStore(t, s)
	server.Exec(t, dsn, `DROP TABLE contextd_schema, contextd_sessions, contextd_shares, contextd_events, contextd_artifacts, contextd_leases; DROP SEQUENCE contextd_incarnations`)
	if _, err := appendTo(t, s, "s", logtest.Say("a")); err == nil {
		t.Fatal("an event was stored in no table")
	}
	err := s.Healthy()
	for ; err == nil; err = s.Healthy() {
		runtime.Gosched()
	}
	if !strings.Contains(err.Error(), "must be migrated") {
		t.Errorf("it is not healthy because %v", err)
	}
	if err := pglog.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	for s.Healthy() != nil {
		runtime.Gosched()
	}
	if _, err := appendTo(t, s, "s", logtest.Say("a")); err != nil {
		t.Error(err)
	}
}

// TestFullForAMinute: a full disk counts as full while writes find no room, and for a minute of probes after that.
func TestFullForAMinute(t *testing.T) {
	needServer(t)
	s := open(t, server.Schema(t), pglog.Options{Migrate: true})
	defer closeStore(t, s)
	s.FoundNoRoom()
	s.Probed()
	if !s.Full() {
		t.Error("the disk is no longer full at the first probe")
	}
	for range 11 {
		s.Probed()
	}
	if s.Full() {
		t.Error("the disk is full for as long as nobody writes")
	}
}

// TestOpenFails: what cannot be opened is refused in a sentence without the password.
func TestOpenFails(t *testing.T) {
	needServer(t)
	const secret = "hunter2"
	server.Guard(t, "guarded", "other")
	for _, c := range []struct {
		name, sql string
		dsn       string // of a schema of its own if empty
		migrate   bool
		says      string
	}{
		{name: "empty schema", says: fmt.Sprintf("has version 0 and this contextd needs %d: it must be migrated first", pglog.Newest)},
		{name: "newer schema", sql: `CREATE TABLE contextd_schema AS SELECT 7 AS version`, says: fmt.Sprintf("has version 7 and this contextd knows versions up to %d", pglog.Newest)},
		{name: "newer schema to migrate", sql: `CREATE TABLE contextd_schema AS SELECT 7 AS version`, migrate: true, says: "has version 7"},
		{name: "another program's table of versions", sql: `CREATE TABLE contextd_schema (v int)`, migrate: true, says: "something other than a contextd store"},
		{name: "another program's tables", sql: `CREATE TABLE contextd_events (v int)`, migrate: true, says: "something other than a contextd store"},
		{name: "no address", dsn: "host=/nowhere port=never password=" + secret, says: "the database's address"},
		{name: "no such role", dsn: server.DSN("") + " user=nobody password=" + secret, says: `role "nobody" does not exist`},
		{name: "wrong password", dsn: server.RoleDSN("guarded") + " password=" + secret, says: `password authentication failed for user "guarded"`},
		{name: "no server", dsn: "host=/nowhere password=" + secret, says: "connect to the database"},
		{name: "no server at a URL", dsn: "postgres://me:" + secret + "@127.0.0.1:1/db", says: "connect to the database"},
	} {
		dsn := c.dsn
		if dsn == "" {
			dsn = server.Schema(t)
		}
		if c.sql != "" {
			server.Exec(t, dsn, c.sql)
		}
		_, err := pglog.Open(t.Context(), dsn, pglog.Options{Migrate: c.migrate})
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", c.name, err)
		}
		if newer := new(*pglog.SchemaError); strings.HasPrefix(c.name, "newer") && !errors.As(err, newer) {
			t.Errorf("%s: %T", c.name, err)
		}
	}
}

// TestGrants: the daemon's role needs no more than docs/shared-store.md grants it.
func TestGrants(t *testing.T) {
	needServer(t)
	page, err := os.ReadFile("../../../docs/shared-store.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```sql\n")
	grants, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the page has no grants")
	}
	dsn := server.Schema(t)
	if err := pglog.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	schema := dsn[strings.LastIndex(dsn, "=")+1:]
	server.Exec(t, dsn, "CREATE ROLE contextd LOGIN; "+strings.ReplaceAll(grants, "SCHEMA public", "SCHEMA "+schema))
	s, err := pglog.Open(t.Context(), strings.Replace(dsn, "user=tester", "user=contextd", 1), pglog.Options{Copying: "disk:source"})
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	if err := s.Copied(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := appendTo(t, s, "s", logtest.Say("a")); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := s.PutArtifacts(t.Context(), "s", eventlog.Artifact{Kind: "k", Seq: 1, ID: "i"}); err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		if has, err := s.Lease(t.Context(), "s", 0, "w", time.Minute); err != nil || !has {
			t.Error(err)
		}
	}
	if err := s.Release(t.Context(), "s", 0, "w"); err != nil {
		t.Error(err)
	}
	if _, err := s.Fork(t.Context(), eventlog.ForkRequest{ParentID: "s", At: 1, NewID: "t"}); err != nil {
		t.Error(err)
	}
	for _, id := range []string{"s", "t"} {
		if err := s.DeleteSession(t.Context(), id, 0, nil); err != nil {
			t.Error(err)
		}
	}
}
