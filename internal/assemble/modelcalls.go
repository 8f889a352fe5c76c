package assemble

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/contextd/contextd/internal/artifact"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/summarize"
)

// Call is a model call as the runtime reports it.
type Call struct {
	SessionID string
	// ProjectionID is the projection that was sent; empty if the call was made from
	// none.
	ProjectionID string
	// Model is as its provider names it; empty is that of the projection's budget.
	Model string
	// InputTokens are all tokens of the prompt as the provider counted them, cached
	// ones included; 0 is not reported.
	InputTokens, CacheReadTokens, CacheWriteTokens, OutputTokens uint64
	StopReason                                                   string
	// Rejected says that the provider refused the prompt as too long.
	Rejected bool
}

// RecordedCall is a Call with what was in force when it was made.
type RecordedCall struct {
	Call
	// Number counts the calls of the session from 1, in the order in which they
	// were reported.
	Number uint32
	Time   time.Time
	// EstimatedTokens is the prompt as the gauge measured it, before any
	// correction; 0 without a projection, as are all that follow but Calibration.
	EstimatedTokens uint64
	Tokenizer       string
	// BudgetModel is the model of the projection's budget, which may go by another
	// name than the one reported.
	BudgetModel string
	Fingerprint string
	InForce     InForce
	// After is the newest projection of the session when the call was reported.
	After string
	// Calibration is what is known of the model with this call.
	Calibration budget.Calibration
}

// InForce are the decisions that a projection was made under.
type InForce struct {
	// SummaryID names the summary, and SummaryVersion the version of the rules it
	// was made by; empty and 0 if there was none.
	SummaryID      string
	SummaryVersion uint32
	// CollapsedThrough is the event through which messages had been dropped.
	CollapsedThrough eventlog.Seq
	// EvictedAsOf is the event at which results were last evicted by age.
	EvictedAsOf eventlog.Seq
}

// inForce reads the decisions out of a record.
func (e *Engine) inForce(ctx context.Context, sessionID string, r projection.Record) (InForce, error) {
	in := InForce{SummaryID: r.After.Summary, CollapsedThrough: r.After.CollapsedThrough, EvictedAsOf: r.After.EvictedAsOf}
	if in.SummaryID == "" {
		return in, nil
	}
	all, err := summarize.Load(ctx, e.store, sessionID, r.AsOf)
	if at := slices.IndexFunc(all, func(s summarize.Summary) bool { return s.ID == in.SummaryID }); at >= 0 {
		in.SummaryVersion = all[at].Version
	}
	return in, err
}

// estimate is the size of the prompt that was made from a projection: what was
// rendered and what the caller said it sends beside it.
func estimate(r projection.Record) uint64 { return r.Tokens + r.Injected + r.Budget.OverheadTokens }

// RecordCall keeps a call beside the log and returns what is known of its model
// from now on; durable on return. Calls of one session are numbered one after the
// other. *eventlog.NotFoundError if there is no such session or projection.
func (e *Engine) RecordCall(ctx context.Context, c Call) (budget.Calibration, error) {
	s, release, err := e.sessions.acquire(ctx, c.SessionID)
	if err != nil {
		return budget.Calibration{}, err
	}
	defer release()
	info, err := s.look(ctx, e.store)
	if err != nil {
		return budget.Calibration{}, err
	}
	if err := e.index(ctx, s); err != nil {
		return budget.Calibration{}, err
	}
	recorded := RecordedCall{Call: c, Time: e.opts.Clock()}
	at := info.Head
	if c.ProjectionID != "" {
		r, err := e.sent(ctx, c)
		if err != nil {
			return budget.Calibration{}, err
		}
		if recorded.InForce, err = e.inForce(ctx, c.SessionID, r); err != nil {
			return budget.Calibration{}, err
		}
		recorded.describe(r)
		at = r.AsOf
	}
	newest, ok, err := artifact.Newest(ctx, e.store, c.SessionID, callKind, 0)
	if err != nil {
		return budget.Calibration{}, err
	}
	if ok {
		if recorded.Number, err = numberOf(newest.ID); err != nil {
			return budget.Calibration{}, err
		}
	}
	if recorded.Number == math.MaxUint32 {
		return budget.Calibration{}, &eventlog.InvalidError{Field: "session_id", Reason: "has as many calls as can be numbered"}
	}
	recorded.Number++
	if recorded.After, err = e.newestProjection(ctx, c.SessionID); err != nil {
		return budget.Calibration{}, err
	}
	if recorded.Calibration, err = e.learn(ctx, recorded); err != nil {
		return budget.Calibration{}, err
	}
	// A call is derived from the calls before it, too: it comes after them, so
	// that a fork which has one call has every call that its calibration is from.
	return recorded.Calibration, recorded.put(ctx, e.store, s.of, max(at, newest.Seq))
}

// sent is the projection that a call was made from.
func (e *Engine) sent(ctx context.Context, c Call) (projection.Record, error) {
	r, err := e.record(ctx, c.SessionID, c.ProjectionID)
	var missing *eventlog.NotFoundError
	if errors.As(err, &missing) && missing.Kind != "session" {
		err = &eventlog.NotFoundError{Kind: "projection", Name: c.ProjectionID}
	}
	return r, err
}

func (c *RecordedCall) describe(r projection.Record) {
	c.EstimatedTokens, c.Fingerprint = estimate(r), r.Fingerprint
	c.Tokenizer, c.BudgetModel = r.Budget.Tokenizer, r.Budget.Model
	if c.Model == "" {
		c.Model = r.Budget.Model
	}
}

// learn is what is known of the call's model with the call.
func (e *Engine) learn(ctx context.Context, c RecordedCall) (budget.Calibration, error) {
	before, err := e.lastCall(ctx, c.SessionID, 0, c.Model, c.Tokenizer)
	if err != nil {
		return budget.Calibration{}, err
	}
	switch {
	case c.ProjectionID == "":
		return before.Calibration, nil
	case c.Rejected:
		return before.Calibration.Reject(c.EstimatedTokens, c.InputTokens), nil
	default:
		return before.Calibration.Observe(c.EstimatedTokens, c.InputTokens), nil
	}
}
