package server

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/memory"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// policy merges the policies of the daemon, the session and the request; nil is an empty one. A request that names a
// policy replaces the session's, even an invalid one.
func (s *Server) policy(session, request *contextdv1.Policy) (assemble.Policy, error) {
	if request.GetName() != "" {
		session = nil
	}
	below, err := wire.PolicyToDomain(session, "policy")
	if err != nil {
		return assemble.Policy{}, fmt.Errorf("the session's own policy: %w", err)
	}
	above, err := wire.PolicyToDomain(request, "policy")
	if err != nil {
		return assemble.Policy{}, err
	}
	return s.policies.Load().Resolve(below, above)
}

// A policy takes several times its size in memory, with its fingerprint, index and record. Small ones are not
// counted.
const (
	policyFactor = 12
	smallPolicy  = 32 << 10
)

// takePolicy checks a request's policy and budget against the limit, and takes the memory for decoding them; if a
// session is named, also that for the session's.
func (s *Server) takePolicy(ctx context.Context, session string, policy *contextdv1.Policy, b *contextdv1.Budget) (*memory.Grant, error) {
	if err := s.limits.CheckPolicy(policy, b); err != nil {
		return nil, err
	}
	n := uint64(proto.Size(policy))
	if session != "" {
		// If the session cannot be read, the call finds out later, when it needs the session.
		if found, err := s.store.Session(ctx, session); err == nil {
			n += uint64(len(found.Settings))
		}
	}
	if n <= smallPolicy {
		return nil, nil
	}
	return s.policing.Take(ctx, policyFactor*n)
}

// takeSettings takes memory for decoding a session's settings.
func (s *Server) takeSettings(ctx context.Context, session eventlog.Session) (*memory.Grant, error) {
	if len(session.Settings) <= smallPolicy {
		return nil, nil
	}
	return s.policing.Take(ctx, settingsFactor*uint64(len(session.Settings)))
}
