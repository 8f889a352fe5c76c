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

// Shadowed is the outcome of computing a shadow: what the shadow policy would have sent in place of a context.
type Shadowed struct {
	// Policy is the name of the shadow policy, and Shadow what it would have sent.
	Policy string
	records.Shadow
	// Took is how long it took to compute and store it.
	Took time.Duration
	// UsedTokens and UsedStable are the tokens of the context that was sent, without injections, and those of its
	// prefix that is as before.
	UsedTokens, UsedStable uint64
	// Err says why it was not computed: ErrShadowsWait, assemble.ErrShadowInUse or another error.
	Err error
}

// ErrShadowsWait says that the queue of shadows is full.
var ErrShadowsWait = errors.New("too many shadows wait")

const (
	// maxShadows bounds the queue. A shadow takes about as long as its context, so the queue fills when the processor
	// is busy.
	maxShadows = 64
	// shadowTime is how long one may take.
	shadowTime = 30 * time.Second
)

// shadows computes shadows one after the other, each after its context was sent. So no call waits for a shadow or fails
// because of one.
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

// shadowed is a shadow to be computed, with the size of the context that was sent.
type shadowed struct {
	assemble.Shadow
	tokens, stable uint64
}

func (s *shadows) init(of *Server) {
	s.server = of
	s.ctx, s.cancel = context.WithCancel(context.Background())
}

// shadow queues the shadow of a context if there is a shadow policy. A context of an earlier state of the log (as_of)
// gets none, because the shadow policy's decisions are about the newest state.
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

// run computes the queued shadows until the queue is empty.
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
	if eventlog.IsMissing(out.Err) || errors.Is(out.Err, assemble.ErrShadowKnown) || s.ctx.Err() != nil {
		return // the session is gone, the answer was repeated, or the daemon stops
	}
	s.server.meter.Shadowed(ctx, out)
}

// StopShadows computes the queued shadows until ctx ends, and drops the others. No shadow is being computed when it
// returns.
func (s *Server) StopShadows(ctx context.Context) {
	all := &s.shadows
	all.mu.Lock()
	all.closed = true
	all.mu.Unlock()
	defer all.cancel()
	defer context.AfterFunc(ctx, all.cancel)()
	all.work.Wait()
}
