package pglog_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/pglog"
)

// TestFewConnections: where the server has fewer connections than the store may use, calls wait for one of those there
// are. They were refused at once.
func TestFewConnections(t *testing.T) {
	needServer(t)
	role := server.SchemaRole(t)
	server.Exec(t, server.DSN(""), "ALTER ROLE "+role+" CONNECTION LIMIT 3")
	s := open(t, server.RoleDSN(role), pglog.Options{MaxConnections: 16})
	defer closeStore(t, s)
	var calls sync.WaitGroup
	for n := range 32 {
		calls.Go(func() {
			id := fmt.Sprint(n)
			for i := range 4 {
				if _, err := appendTo(t, s, id, logtest.Say(fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
				if _, err := s.Session(t.Context(), id); err != nil {
					t.Error(err)
				}
			}
		})
	}
	calls.Wait()
	if pool := s.Pool(); pool.Waits == 0 {
		t.Errorf("no statement is counted as one that waited: %+v", pool)
	}
}

// TestNoConnection: a call that waited in vain says what the server said.
func TestNoConnection(t *testing.T) {
	needServer(t)
	role := server.SchemaRole(t)
	s := open(t, server.RoleDSN(role), pglog.Options{Timeout: 100 * time.Millisecond})
	defer closeStore(t, s)
	server.Exec(t, server.DSN(""), "ALTER ROLE "+role+" CONNECTION LIMIT 0")
	_, err := s.Session(t.Context(), "s")
	away, ok := errors.AsType[*eventlog.UnavailableError](err)
	if !ok || !strings.Contains(away.Cause.Error(), "too many connections") {
		t.Errorf("%T %v", err, err)
	}
}
