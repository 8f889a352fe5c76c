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

// policy is what the daemon, a session and a request say together; nil says nothing. A
// request that names a policy replaces the session's, whether that is valid or not.
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

// What is made of a policy, such as its fingerprint, its index and the record, takes
// several times as much; small ones are not worth counting.
const (
	policyFactor = 12
	smallPolicy  = 32 << 10
)

// takePolicy holds a request's policy and budget against the limit, and takes memory for
// them and for those of the session, if one is named, before anybody decodes them.
func (s *Server) takePolicy(ctx context.Context, session string, policy *contextdv1.Policy, b *contextdv1.Budget) (*memory.Grant, error) {
	if err := s.limits.CheckPolicy(policy, b); err != nil {
		return nil, err
	}
	n := uint64(proto.Size(policy))
	if session != "" {
		// Whoever needs the session asks for it again, and learns why it is not there.
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
