package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/guard"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
)

// Shadowed is the shadow of a context that was sent, or why there is none.
type Shadowed struct {
	// Policy is the name of the shadow policy, and Shadow what it would have sent.
	Policy string
	records.Shadow
	// Took is how long it was computed and stored.
	Took time.Duration
	// UsedTokens and UsedStable are those of the context in use, without injections.
	UsedTokens, UsedStable uint64
	// Err is why it was not computed: ErrShadowsWait, assemble.ErrShadowInUse or another.
	Err error
}

// ErrShadowsWait says that too many shadows wait for another one to.
var ErrShadowsWait = errors.New("too many shadows wait")

const (
	// maxShadows is how many may wait. A shadow takes about as long as its context, so that these
	// wait where the processor is busy.
	maxShadows = 64
	// shadowTime is how long one may take.
	shadowTime = 30 * time.Second
)

// shadows are computed one after the other, after the answers that they are about were sent, so that
// no call waits for one or fails by it.
type shadows struct {
	server *Server
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	waiting []shadowed
	running bool
	closed  bool
	work    sync.WaitGroup
}

// shadowed is a shadow to be computed, and what its context in use took.
type shadowed struct {
	assemble.Shadow
	tokens, stable uint64
}

func (s *shadows) init(of *Server) {
	s.server = of
	s.ctx, s.cancel = context.WithCancel(context.Background())
}

// shadow has the shadow of a context computed, if there is a policy for it. Contexts of the log
// as it was have none: the policy has not decided up to there.
func (s *Server) shadow(made *assemble.Context, req assemble.Request) {
	p, name := s.policies.Load().Shadow(req.Policy)
	if name == "" || req.Preview || req.AsOf != nil || made.Projection.ID == "" {
		return
	}
	s.shadows.add(shadowed{
		assemble.Shadow{
			Name: name, Policy: p, Budget: req.Budget,
			SessionID: made.SessionID, Of: made.Of, AsOf: made.AsOf, ProjectionID: made.Projection.ID, Fingerprint: made.Projection.Fingerprint,
		},
		made.Projection.Tokens, made.Cache.StableTokens,
	})
}

func (s *shadows) add(one shadowed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if len(s.waiting) == maxShadows {
		s.server.meter.Shadowed(s.ctx, Shadowed{Policy: one.Name, Err: ErrShadowsWait})
		return
	}
	s.waiting = append(s.waiting, one)
	if !s.running {
		s.running = true
		s.work.Go(s.run)
	}
}

// run computes those that wait until none does.
func (s *shadows) run() {
	for {
		s.mu.Lock()
		if len(s.waiting) == 0 {
			s.running = false
			s.mu.Unlock()
			return
		}
		next := s.waiting[0]
		s.waiting[0] = shadowed{}
		s.waiting = s.waiting[1:]
		s.mu.Unlock()
		s.compute(next)
	}
}

func (s *shadows) compute(next shadowed) {
	ctx, cancel := context.WithTimeout(eventlog.OneCall(s.ctx), shadowTime)
	defer cancel()
	out := Shadowed{Policy: next.Name, UsedTokens: next.tokens, UsedStable: next.stable}
	start := s.server.clock()
	out.Err = guard.Run(s.server.logger, "shadow", func() (err error) {
		out.Shadow, err = s.server.engine.Shadow(ctx, next.Shadow)
		return err
	})
	out.Took = s.server.clock().Sub(start)
	_, gone := errors.AsType[*eventlog.NotFoundError](out.Err)
	if gone || errors.Is(out.Err, assemble.ErrShadowKnown) || s.ctx.Err() != nil {
		return // the session is gone, the answer was repeated, or the daemon stops
	}
	s.server.meter.Shadowed(ctx, out)
}

// StopShadows computes the shadows that wait, until ctx ends. It returns when none is computed any more.
func (s *Server) StopShadows(ctx context.Context) {
	all := &s.shadows
	all.mu.Lock()
	all.closed = true
	all.mu.Unlock()
	defer all.cancel()
	defer context.AfterFunc(ctx, all.cancel)()
	all.work.Wait()
}
