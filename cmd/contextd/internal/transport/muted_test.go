package transport_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/contextd/contextd/cmd/contextd/internal/transport"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// Calls that fail by the thousand write some lines, not a disk full of them, and hide none that
// fail otherwise.
func TestFailuresAreLoggedSometimes(t *testing.T) {
	log := &journal{}
	client := serve(t, log, nil, func(o *transport.Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	for range 500 {
		if _, err := client.GetSession(t.Context(), &contextdv1.GetSessionRequest{SessionId: "refuse"}); err == nil {
			t.Fatal("the call did not fail")
		}
	}
	for _, how := range []string{"fail", "broken"} {
		if _, err := client.GetSession(t.Context(), &contextdv1.GetSessionRequest{SessionId: how}); err == nil {
			t.Fatal("the call did not fail")
		}
	}
	text := log.String()
	if n := strings.Count(text, "grpc.code=InvalidArgument"); n < 10 || n > 30 { // two windows may have begun
		t.Errorf("500 calls that fail alike have %d lines", n)
	}
	for _, code := range []string{"Internal", "Unavailable"} {
		if strings.Count(text, "grpc.code="+code) != 1 {
			t.Errorf("no line of the call that fails with %s", code)
		}
	}
}
