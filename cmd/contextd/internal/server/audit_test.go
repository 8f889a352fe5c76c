package server_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/contextd/contextd/cmd/contextd/internal/server"
	"github.com/contextd/contextd/internal/log/memlog"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// Imports, forks and deletions leave a line each, and nothing of what was said.
func TestChangesOfSessionsAreLogged(t *testing.T) {
	var log bytes.Buffer
	a := serve(t, memlog.New(), func(o *server.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	if _, err := a.importInto(t, "s", transcript("my secret")); err != nil {
		t.Fatal(err)
	}
	if _, err := a.ForkSession(t.Context(), &contextdv1.ForkSessionRequest{SessionId: "s", NewSessionId: "f", AtSeq: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.DeleteSession(t.Context(), &contextdv1.DeleteSessionRequest{SessionId: "s"}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.DeleteSession(t.Context(), &contextdv1.DeleteSessionRequest{SessionId: "s"}); err == nil {
		t.Fatal("it was deleted twice")
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	want := []string{
		`msg="transcript imported" session_id=s peer=bufconn events=5`,
		`msg="session forked" session_id=f peer=bufconn parent=s at=2`,
		`msg="session deleted" session_id=s peer=bufconn events=5 bytes=`,
	}
	if len(lines) != len(want) {
		t.Fatalf("the log:\n%s", &log)
	}
	for i, line := range lines {
		if !strings.Contains(line, "level=INFO") || !strings.Contains(line, want[i]) {
			t.Errorf("line %d is %s, without %s", i+1, line, want[i])
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Error("the log holds what was said")
	}
}
