package pglog_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/contextd/contextd/internal/log/pglog"
)

// TestClocksDiffer: a machine whose clock is wrong dates what other daemons delete by its age, so the log says so.
func TestClocksDiffer(t *testing.T) {
	needServer(t)
	for ahead, warned := range map[time.Duration]bool{0: false, 5 * time.Hour: true, -5 * time.Hour: true} {
		var log bytes.Buffer
		s := open(t, server.Schema(t), pglog.Options{
			Logger: slog.New(slog.NewTextHandler(&log, nil)), Clock: func() time.Time { return time.Now().Add(ahead) },
		})
		s.Listening(t.Context())
		closeStore(t, s)
		if got := strings.Contains(log.String(), "this machine's clock differs from the database's"); got != warned {
			t.Errorf("%s ahead: the log has %q", ahead, log.String())
		}
	}
}
