package daemon_test

import (
	"fmt"
	"testing"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestPostgresSetBack: the database is set back to an earlier state while a daemon runs, as by a restored backup or a
// failover to a server with less, and others append to the session. The daemon shows what is there then.
func TestPostgresSetBack(t *testing.T) {
	server := postgres(t)
	for _, after := range []int{0, 1, 2, 3} {
		t.Run(fmt.Sprintf("%d events after", after), func(t *testing.T) {
			dsn := server.Schema(t)
			postgres := settings(t, func(c *config.Config) { c.Store, c.Postgres.DSN = config.StorePostgres, dsn })
			one, other := start(t, postgres), start(t, postgres)
			say := func(r *running, text string) {
				t.Helper()
				if _, err := r.api().AppendEvents(t.Context(), say("s", text)); err != nil {
					t.Fatal(err)
				}
			}
			tables := []string{"contextd_sessions", "contextd_shares", "contextd_events", "contextd_artifacts"}
			for n := range 4 {
				say(one, fmt.Sprintf("message %d", n))
			}
			assembledBytes(t, one)
			for _, name := range tables {
				server.Exec(t, dsn, fmt.Sprintf("CREATE TABLE saved_%s AS TABLE %[1]s", name))
			}
			for n := range 2 {
				say(one, fmt.Sprintf("message %d, lost", n+4))
			}
			assembledBytes(t, one)
			for _, name := range tables {
				server.Exec(t, dsn, fmt.Sprintf("TRUNCATE %s CASCADE; INSERT INTO %[1]s TABLE saved_%[1]s", name))
			}
			for n := range after {
				say(other, fmt.Sprintf("message %d, another", n+4))
			}
			for range 2 {
				got, want := assembledBytes(t, one), assembledBytes(t, other)
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("it shows\n%s\nand another daemon\n%s", got, want)
				}
				say(other, "later")
			}
			all, err := one.api().ListProjections(t.Context(), &contextdv1.ListProjectionsRequest{SessionId: "s"})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range all.GetProjections() {
				again, err := one.api().ReplayProjection(t.Context(), &contextdv1.ReplayProjectionRequest{SessionId: "s", ProjectionId: p.GetProjectionId()})
				if err != nil || !again.GetSame() {
					t.Errorf("%s: %v, %s", p.GetProjectionId(), err, again.GetDifference())
				}
			}
			one.end(t)
			other.end(t)
		})
	}
}
