package pglog_test

import (
	"testing"

	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/pglog"
)

// TestStats: what the database's catalog says of the tables is there, of this store's schema alone.
func TestStats(t *testing.T) {
	needServer(t)
	other := open(t, server.Schema(t), pglog.Options{})
	defer closeStore(t, other)
	dsn := server.Schema(t)
	s := open(t, dsn, pglog.Options{MaxConnections: 3})
	defer closeStore(t, s)
	for _, store := range []*pglog.Store{other, s} {
		if _, err := appendTo(t, store, "s", logtest.Say("a"), logtest.Say("b")); err != nil {
			t.Fatal(err)
		}
	}
	server.Exec(t, dsn, "ANALYZE")
	all, err := s.Tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int64{}
	for _, table := range all {
		rows[table.Name] = table.Rows
		if table.Indexes == 0 || table.Bytes == 0 && table.Rows > 0 {
			t.Errorf("%+v", table)
		}
	}
	for name, want := range map[string]int64{"contextd_sessions": 1, "contextd_shares": 1, "contextd_events": 2, "contextd_artifacts": 0} {
		if got, there := rows[name]; got != want || !there {
			t.Errorf("%s: %d rows, want %d", name, got, want)
		}
	}
	if pool := s.Pool(); pool.Max != 3 || pool.Used < 0 || pool.Used+pool.Idle == 0 {
		t.Errorf("%+v", pool)
	}
}
