package server

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/contextd/contextd/internal/guard"
	"github.com/contextd/contextd/internal/lifecycle"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// brokenReplies is a runtime's stream whose second message cannot be received.
type brokenReplies struct {
	hookStream
	ctx      context.Context
	received int
}

func (s *brokenReplies) Context() context.Context       { return s.ctx }
func (s *brokenReplies) SendHeader(_ metadata.MD) error { return nil }
func (s *brokenReplies) Recv() (*contextdv1.ServeHooksRequest, error) {
	if s.received++; s.received > 1 {
		panic("no such message")
	}
	return &contextdv1.ServeHooksRequest{Part: &contextdv1.ServeHooksRequest_Subscribe{Subscribe: &contextdv1.HookSubscription{PreCompact: true}}}, nil
}

// TestPanicOfReplies: it ends the stream, and not the program.
func TestPanicOfReplies(t *testing.T) {
	before := guard.Panics()
	c := &compactions{
		server: &Server{shared: &shared{draining: t.Context()}, logger: slog.New(slog.DiscardHandler)},
		hooks:  lifecycle.NewHooks(lifecycle.HooksOptions{}),
	}
	err := c.ServeHooks(&brokenReplies{ctx: t.Context()})
	if err == nil || !strings.Contains(err.Error(), "no such message") || guard.Panics() != before+1 {
		t.Errorf("%v, %d panics", err, guard.Panics()-before)
	}
}
