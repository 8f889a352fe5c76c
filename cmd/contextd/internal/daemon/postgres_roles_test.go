package daemon_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/internal/log/pglog"
	"github.com/contextd/contextd/internal/log/pglog/pgtest"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestPostgresRole: a role with the rights that docs/shared-store.md grants, and none to make tables,
// serves all that writes and reads. While the database is away a restart of the daemon would help
// nobody.
func TestPostgresRole(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	if server == nil {
		t.Skip("SKIPPED: no PostgreSQL is installed (Debian's package postgresql)")
	}
	defer server.Stop()
	if err := pglog.Migrate(t.Context(), server.DSN("")); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../../docs/shared-store.md")
	if err != nil {
		t.Fatal(err)
	}
	grants := regexp.MustCompile("(?s)```sql\n(GRANT .*?)```").FindSubmatch(page)
	if grants == nil {
		t.Fatal("the page has no grants")
	}
	server.Exec(t, server.DSN(""), "CREATE ROLE contextd LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC;"+string(grants[1]))
	address := free(t)
	r := start(t, settings(t, func(c *config.Config) {
		c.Store, c.Postgres.DSN, c.Postgres.Migrate, c.MetricsListen = config.StorePostgres, server.RoleDSN("contextd"), false, address
	}))
	r.await(t, serving)
	if _, err := r.api().AppendEvents(t.Context(), say("s", "hello")); err != nil {
		t.Fatal(err)
	}
	if got := assembledBytes(t, r); len(got) != 1 {
		t.Errorf("assembled %s", got)
	}
	if _, err := r.api().ForkSession(t.Context(), &contextdv1.ForkSessionRequest{SessionId: "s", NewSessionId: "f"}); err != nil {
		t.Error(err)
	}
	for _, id := range []string{"f", "s"} {
		if _, err := r.api().DeleteSession(t.Context(), &contextdv1.DeleteSessionRequest{SessionId: id}); err != nil {
			t.Error(err)
		}
	}
	probes := func(live, ready int) {
		t.Helper()
		for path, want := range map[string]int{"/livez": live, "/readyz": ready} {
			if got := statusAt(t, "http://"+address+path); got != want {
				t.Errorf("%s: %d, want %d", path, got, want)
			}
		}
	}
	probes(200, 200)
	server.Crash()
	r.await(t, notServing)
	probes(200, 503)
	if err := server.Launch(); err != nil {
		t.Fatal(err)
	}
	r.await(t, serving)
	probes(200, 200)
	r.end(t)
}
