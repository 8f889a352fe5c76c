package assemble

import (
	"context"
	"errors"
	"iter"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
)

// Shadow asks what another policy would have sent instead of a recorded context.
type Shadow struct {
	// Name is the policy's name in records.
	Name   string
	Policy Policy
	Budget budget.Spec

	// The context that was sent: its session, record and fingerprint. AsOf is its last event.
	SessionID    string
	Of           eventlog.Incarnation
	AsOf         eventlog.Seq
	ProjectionID string
	Fingerprint  string
}

// The reasons why Shadow computes nothing.
var (
	ErrShadowInUse = errors.New("the shadow policy is the one in use")
	ErrShadowKnown = errors.New("the shadow of the projection was computed before")
)

// Shadow computes what a policy would have sent, and stores it next to the record of the context, durable on return.
// The policy starts from its decisions in the session's earlier shadows, as if it had always been in use; no real
// context uses these decisions. Call it for the contexts of a session in order. The error is ErrShadowInUse,
// ErrShadowKnown, or one of Assemble.
func (e *Engine) Shadow(ctx context.Context, of Shadow) (records.Shadow, error) {
	b, _, err := e.resolve(of.Budget)
	if err != nil {
		return records.Shadow{}, err
	}
	of.Policy.Projection = of.Policy.Projection.WithScrubber(e.opts.Scrub)
	if e.fingerprint(of.Policy, b) == of.Fingerprint {
		return records.Shadow{}, ErrShadowInUse
	}
	before, err := records.ShadowOf(ctx, e.store, of.SessionID, of.AsOf, of.ProjectionID)
	if err != nil {
		return records.Shadow{}, err
	}
	if before != nil {
		return records.Shadow{}, ErrShadowKnown
	}
	out, err := e.shadow.Assemble(ctx, Request{SessionID: of.SessionID, AsOf: &of.AsOf, Budget: of.Budget, Policy: of.Policy, shadow: &of})
	if _, over := errors.AsType[*BudgetError](err); over {
		return of.refused(ctx, e.store)
	}
	if err != nil {
		return records.Shadow{}, err
	}
	return of.record(out), nil
}

// record returns the shadow record of a context that the policy would have sent.
func (of Shadow) record(c *Context) records.Shadow {
	return records.Shadow{
		Policy: of.Name, Tokens: c.Projection.Tokens, Messages: c.Projection.MessageCount,
		StableTokens: c.Cache.StableTokens, BrokenBy: c.Cache.BrokenBy,
	}
}

// refused stores that the policy would have sent nothing, because its context exceeds the budget.
func (of Shadow) refused(ctx context.Context, store eventlog.Artifacts) (records.Shadow, error) {
	s := records.Shadow{Policy: of.Name, OverBudget: true}
	a, err := records.ShadowArtifact(of.AsOf, of.ProjectionID, s)
	if err != nil {
		return s, err
	}
	a.Of = of.Of
	return s, store.PutArtifacts(ctx, of.SessionID, a)
}

// recordShadow stores a shadow's decisions with its record. No lifecycle event reports them.
func (e *Engine) recordShadow(ctx context.Context, s *session, of Shadow, c *Context, all []eventlog.Artifact) error {
	a, err := records.ShadowArtifact(of.AsOf, of.ProjectionID, of.record(c))
	if err != nil {
		return err
	}
	return e.store.PutArtifacts(ctx, s.id, append(all, a)...)
}

// complete gives an engine a second one that computes shadows, and the sessions of replays. All have sessions of their
// own, in the same pool.
func (e *Engine) complete() *Engine {
	e.replays = e.sessions.pool.sessions()
	e.shadow = &Engine{store: apart{e.store}, opts: e.opts, sessions: e.sessions.pool.sessions()}
	return e
}

// apart is a store that keeps the decisions of shadows under separate artifact kinds, so that no context
// uses them.
type apart struct{ Store }

func (a apart) ReadRuns(ctx context.Context, id string, runs eventlog.Ranges) iter.Seq2[eventlog.Event, error] {
	return eventlog.ReadRuns(ctx, a.Store, id, runs)
}

func (a apart) PutArtifacts(ctx context.Context, sessionID string, all ...eventlog.Artifact) error {
	for i := range all {
		all[i].Kind = records.ShadowKind(all[i].Kind)
	}
	return a.Store.PutArtifacts(ctx, sessionID, all...)
}

func (a apart) Artifact(ctx context.Context, sessionID, kind string, seq eventlog.Seq, id string) (eventlog.Artifact, error) {
	return a.Store.Artifact(ctx, sessionID, records.ShadowKind(kind), seq, id)
}

func (a apart) Artifacts(ctx context.Context, sessionID string, q eventlog.ArtifactQuery) iter.Seq2[eventlog.Artifact, error] {
	q.Kind = records.ShadowKind(q.Kind)
	return a.Store.Artifacts(ctx, sessionID, q)
}
