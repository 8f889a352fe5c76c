package pglog_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/pglog"
	"github.com/contextd/contextd/internal/log/pglog/pgtest"
)

// server is nil where no PostgreSQL is installed.
var server *pgtest.Server

func TestMain(m *testing.M) {
	code := func() int {
		var err error
		if server, err = pgtest.Start(); err != nil {
			fmt.Fprintln(os.Stderr, "PostgreSQL:", err)
			return 1
		}
		if server != nil {
			defer server.Stop()
		}
		return m.Run()
	}()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func needServer(t *testing.T) {
	t.Helper()
	if server == nil {
		t.Skip("SKIPPED: no PostgreSQL is installed (Debian's package postgresql)")
	}
}

func open(t testing.TB, dsn string, opts pglog.Options) *pglog.Store {
	t.Helper()
	opts.Migrate = true
	s, err := pglog.Open(t.Context(), dsn, opts)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

// stores opens stores in schemas of their own and reopens each in the same.
type stores struct {
	opts    pglog.Options
	inCalls bool
	// schema makes a schema and returns its address.
	schema func(t testing.TB) string
	dsns   map[eventlog.Store]string
}

func newStores(opts pglog.Options) *stores {
	return &stores{opts: opts, schema: server.Schema, dsns: map[eventlog.Store]string{}}
}

func (st *stores) open(t testing.TB) eventlog.Store { return st.in(t, st.schema(t)) }

func (st *stores) in(t testing.TB, dsn string) eventlog.Store {
	var s eventlog.Store = open(t, dsn, st.opts)
	if st.inCalls {
		s = &inCalls{s}
	}
	st.dsns[s] = dsn
	return s
}

func (st *stores) reopen(t testing.TB, s eventlog.Store) eventlog.Store {
	t.Helper()
	if err := s.Close(); err != nil && !errors.Is(err, eventlog.ErrClosed) {
		t.Fatalf("close: %v", err)
	}
	return st.in(t, st.dsns[s])
}

// A store that makes each write once has its callers repeat those that lost, as the contract lets it.
func TestConformance(t *testing.T) {
	needServer(t)
	st := newStores(pglog.Options{Attempts: 1})
	logtest.Run(t, st.open, logtest.Durable(st.reopen))
}

// TestConformanceThroughPooler: what a server does through pgbouncer in transaction mode is the same.
func TestConformanceThroughPooler(t *testing.T) {
	needServer(t)
	bouncer := pgtest.StartBouncer(t, server)
	st := newStores(pglog.Options{Attempts: 1})
	st.schema = func(t testing.TB) string { return bouncer.DSN(server.SchemaRole(t)) }
	logtest.Run(t, st.open, logtest.Durable(st.reopen))
}

// TestConformanceWithoutDescriptions: the store knows the types of its arguments without asking the server, which
// holds for the other such mode, simple_protocol, too. What is released has no types but these.
func TestConformanceWithoutDescriptions(t *testing.T) {
	needServer(t)
	st := newStores(pglog.Options{Attempts: 1})
	st.schema = func(t testing.TB) string { return server.Schema(t) + " default_query_exec_mode=exec" }
	logtest.Run(t, st.open, logtest.Durable(st.reopen))
}

func TestModel(t *testing.T) {
	needServer(t)
	for name, calls := range map[string]bool{"each by itself": false, "in calls": true} {
		t.Run(name, func(t *testing.T) {
			st := newStores(pglog.Options{})
			st.inCalls = calls
			logtest.RunModel(t, st.open, logtest.Durable(st.reopen))
		})
	}
}
