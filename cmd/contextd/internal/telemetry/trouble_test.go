package telemetry_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextd/contextd/cmd/contextd/internal/telemetry"
)

// lines is a log that is read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// TestTroubleIsLogged has exports fail, which is said in the daemon's log in its format.
func TestTroubleIsLogged(t *testing.T) {
	log := &lines{}
	tel, err := telemetry.Setup(t.Context(), telemetry.Options{
		Logger: slog.New(slog.NewJSONHandler(log, nil)),
		LookupEnv: set(t, map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none", "OTEL_METRIC_EXPORT_INTERVAL": "20",
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tel.Shutdown(t.Context()) }() // which cannot export either
	record(t, tel)
	const want = `"msg":"there is trouble with telemetry"`
	for until := time.Now().Add(10 * time.Second); !strings.Contains(log.String(), want); <-time.After(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("no %s in the log: %s", want, log)
		}
	}
}
