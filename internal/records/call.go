package records

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/contextd/contextd/internal/artifact"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
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

// ModelCall is a reported call with what was in force when it was made.
type ModelCall struct {
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
func inForce(ctx context.Context, store eventlog.Artifacts, sessionID string, r Projection) (InForce, error) {
	in := InForce{SummaryID: r.After.Summary, CollapsedThrough: r.After.CollapsedThrough, EvictedAsOf: r.After.EvictedAsOf}
	if in.SummaryID == "" {
		return in, nil
	}
	all, err := summarize.Load(ctx, store, sessionID, r.AsOf)
	if at := slices.IndexFunc(all, func(s summarize.Summary) bool { return s.ID == in.SummaryID }); at >= 0 {
		in.SummaryVersion = all[at].Version
	}
	return in, err
}

// estimate is the size of the prompt that was made from a projection: what was
// rendered and what the caller said it sends beside it.
func estimate(r Projection) uint64 { return r.Tokens + r.Injected + r.Budget.OverheadTokens }

// Report keeps a call next to the log and returns what is known of its model from now on;
// durable on return. head is the log's, and of, if not 0, the incarnation of the session that
// is meant. Calls of one session are reported one after the other.
// *eventlog.NotFoundError if there is no such session or projection.
func Report(ctx context.Context, store eventlog.Artifacts, of eventlog.Incarnation, head eventlog.Seq, report Call, now time.Time) (budget.Calibration, error) {
	c := ModelCall{Call: report, Time: now}
	at := head
	if c.ProjectionID != "" {
		r, err := c.Sent(ctx, store)
		if err != nil {
			return budget.Calibration{}, err
		}
		if c.InForce, err = inForce(ctx, store, c.SessionID, r); err != nil {
			return budget.Calibration{}, err
		}
		c.describe(r)
		at = r.AsOf
	}
	newest, ok, err := artifact.Newest(ctx, store, c.SessionID, callKind, 0)
	if err != nil {
		return budget.Calibration{}, err
	}
	if ok {
		if c.Number, err = numberOf(newest.ID); err != nil {
			return budget.Calibration{}, err
		}
	}
	if c.Number == math.MaxUint32 {
		return budget.Calibration{}, &eventlog.InvalidError{Field: "session_id", Reason: "has as many calls as can be numbered"}
	}
	c.Number++
	if c.After, err = Newest(ctx, store, c.SessionID); err != nil {
		return budget.Calibration{}, err
	}
	if c.Calibration, err = c.learn(ctx, store); err != nil {
		return budget.Calibration{}, err
	}
	// A call is derived from the calls before it, too: it comes after them, so
	// that a fork which has one call has every call that its calibration is from.
	return c.Calibration, c.put(ctx, store, of, max(at, newest.Seq))
}

// Sent is the projection that a call was made from, or *eventlog.NotFoundError.
func (c Call) Sent(ctx context.Context, store eventlog.Artifacts) (Projection, error) {
	r, err := Get(ctx, store, c.SessionID, c.ProjectionID)
	var missing *eventlog.NotFoundError
	if errors.As(err, &missing) && missing.Kind != "session" {
		err = &eventlog.NotFoundError{Kind: "projection", Name: c.ProjectionID}
	}
	return r, err
}

func (c *ModelCall) describe(r Projection) {
	c.EstimatedTokens, c.Fingerprint = estimate(r), r.Fingerprint
	c.Tokenizer, c.BudgetModel = r.Budget.Tokenizer, r.Budget.Model
	if c.Model == "" {
		c.Model = r.Budget.Model
	}
}

// learn is what is known of the call's model with the call.
func (c ModelCall) learn(ctx context.Context, store eventlog.Artifacts) (budget.Calibration, error) {
	before, err := lastCall(ctx, store, c.SessionID, 0, c.Model, c.Tokenizer)
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
