package server

import (
	"context"

	"google.golang.org/grpc/peer"
)

// audit logs, with the caller, that a session was made from another, replaced or removed.
func (s *Server) audit(ctx context.Context, what, session string, about ...any) {
	from := "unknown"
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		// The address of a socket's client is not set.
		if from = p.Addr.String(); p.Addr.Network() == "unix" {
			from = "unix socket"
		}
	}
	s.logger.InfoContext(ctx, what, append([]any{"session_id", session, "peer", from}, about...)...) //nolint:sloglint // the callers' messages are literals
}
