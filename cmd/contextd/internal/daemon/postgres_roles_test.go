package daemon_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/internal/log/pglog"
	"github.com/contextd/contextd/internal/log/pglog/pgtest"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestPostgresRole: a role with the rights that docs/shared-store.md grants, on tables set as it says, and none to make tables,
// serves all that writes and reads, and the metrics that dashboard and alerts ask for. While the database is away a restart of the daemon would help
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
	server.Exec(t, server.DSN(""), "CREATE ROLE contextd LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC")
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if !slices.ContainsFunc(blocks, func(b []string) bool { return strings.HasPrefix(b[1], "GRANT ") }) {
		t.Fatal("the page has no grants")
	}
	for _, block := range blocks {
		server.Exec(t, server.DSN(""), block[1])
	}
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
	body := scrape(t, "http://"+address+"/metrics")
	for _, path := range []string{"prometheus/contextd.rules.yaml", "grafana/contextd.json"} {
		text, err := os.ReadFile("../../../../deploy/" + path)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`contextd_database_[a-z_]+`).FindAllString(string(text), -1)
		for _, name := range names {
			if !strings.Contains(body, name+"{") {
				t.Errorf("%s: the daemon has no metric %s", path, name)
			}
		}
		if len(names) == 0 {
			t.Errorf("%s has nothing of the database", path)
		}
	}
	if strings.Contains(body, "contextd_sessions{") || strings.Contains(body, "contextd_sessions_size") {
		t.Error("all sessions of the database are counted although nothing limits them")
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
