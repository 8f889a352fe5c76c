package pglog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/pglog"
)

// TestPlainSQL: nothing is asked for that only PostgreSQL itself has, but for what others do without.
func TestPlainSQL(t *testing.T) {
	own := map[string]string{
		"pg_notify":               "those who wait ask as well",
		"pg_backend_pid":          "without it nothing is listened to",
		"pg_logical_emit_message": "asked for only where synchronous_standby_names is set",
		"pg_table_size":           "metrics", "pg_indexes_size": "metrics", "pg_class": "metrics",
		"pg_inherits": "metrics", "pg_stat_user_tables": "metrics",
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	steps, err := filepath.Glob("migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, file := range append(files, steps...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\bpg_[a-z_]+`).FindAllString(string(text), -1) {
			if seen[name] = true; own[name] == "" {
				t.Errorf("%s uses %s", file, name)
			}
		}
		for _, word := range []string{"advisory", "EXTENSION", "plpgsql", "TRIGGER", "LOCK TABLE"} {
			if regexp.MustCompile(`(?i)\b` + word + `\b.*[` + "`" + `;(]`).Match(text) {
				t.Errorf("%s uses %s", file, word)
			}
		}
	}
	for name := range own {
		if !seen[name] {
			t.Errorf("%s is not used any more", name)
		}
	}
}

// TestRetries: every write is repeated where the server undid it because of another, as servers do that
// run every transaction as if it were alone.
func TestRetries(t *testing.T) {
	needServer(t)
	for _, code := range []string{"40001", "40P01"} {
		dsn := server.Schema(t)
		s := open(t, dsn, pglog.Options{})
		const undone = 3
		server.Exec(t, dsn, fmt.Sprintf(`CREATE SEQUENCE undone; CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN IF nextval('undone') <= %d THEN RAISE 'undone' USING ERRCODE = '%s'; END IF; RETURN NULL; END $$;
			CREATE TRIGGER undo AFTER INSERT OR UPDATE OR DELETE ON contextd_sessions FOR EACH ROW EXECUTE FUNCTION undo();
			CREATE TRIGGER undo AFTER INSERT OR UPDATE OR DELETE ON contextd_leases FOR EACH ROW EXECUTE FUNCTION undo()`, undone, code))
		for _, write := range []struct {
			name string
			do   func() error
		}{
			{"create", func() error {
				_, err := s.CreateSession(t.Context(), eventlog.Session{ID: "s"})
				return err
			}},
			{"append to a new session", func() error { _, err := appendTo(t, s, "n", logtest.Say("a")); return err }},
			{"append", func() error { _, err := appendTo(t, s, "s", logtest.Say("a")); return err }},
			{"put", func() error {
				return s.PutArtifacts(t.Context(), "s", eventlog.Artifact{Kind: "k", Seq: 1, ID: "i", New: true})
			}},
			{"lease", func() error {
				has, err := s.Lease(t.Context(), "s", 0, "w", time.Minute)
				if err == nil && !has {
					err = errors.New("not granted")
				}
				return err
			}},
			{"fork", func() error {
				_, err := s.Fork(t.Context(), eventlog.ForkRequest{ParentID: "s", At: 1, NewID: "f"})
				return err
			}},
			{"delete", func() error { return s.DeleteSession(t.Context(), "s", 0, nil) }},
		} {
			server.Exec(t, dsn, `SELECT setval('undone', 1, false)`)
			if err := write.do(); err != nil {
				t.Errorf("%s, %s: %v", code, write.name, err)
			}
			if n := sequence(t, dsn, "undone"); n <= undone {
				t.Errorf("%s, %s: undone %d times, so this test shows nothing", code, write.name, n)
			}
		}
		if err := s.Verify(t.Context(), "f"); err != nil {
			t.Error(err)
		}
		closeStore(t, s)
	}
}

// TestReadStreams: a log of 10,000 events is read without being held.
func TestReadStreams(t *testing.T) {
	needServer(t)
	s := open(t, server.Schema(t), pglog.Options{})
	defer closeStore(t, s)
	const events, atOnce, size = 10_000, 500, 4 << 10
	for n := range events / atOnce {
		batch := make([]eventlog.Event, atOnce)
		for i := range batch {
			batch[i] = logtest.Say(fmt.Sprintf("%d %s", n*atOnce+i, strings.Repeat("x", size)))
		}
		if _, err := appendTo(t, s, "s", batch...); err != nil {
			t.Fatal(err)
		}
	}
	held := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, most, read := held(), int64(0), 0
	for _, err := range s.Read(t.Context(), "s", 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if read++; read%atOnce == atOnce/2 {
			most = max(most, held()-before)
		}
	}
	t.Logf("%d events of %d bytes: at most %d KiB held", read, size, most>>10)
	if read != events || most > events*size/4 {
		t.Errorf("%d events read, %d bytes held", read, most)
	}
}
