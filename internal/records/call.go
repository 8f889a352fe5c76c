package records

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/contextd/contextd/internal/artifact"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/summarize"
)

// Call is a model call as the runtime reports it.
type Call struct {
	SessionID string
	// ProjectionID is the projection that was sent; empty if the prompt was not made from one.
	ProjectionID string
	// Model is the provider's name of the model; empty is the model of the projection's budget.
	Model string
	// InputTokens are all tokens of the prompt as the provider counted them, including cached ones. In these fields 0
	// is "not reported".
	InputTokens, CacheReadTokens, CacheWriteTokens, OutputTokens uint64
	StopReason                                                   string
	// Rejected says that the provider refused the prompt as too long.
	Rejected bool
	// IdempotencyKey is the report's; empty if it had none. It is not set in calls that are read from the store,
	// which has only the key's hash.
	IdempotencyKey string
}

// ModelCall is a reported call, with the decisions that were in force when it was made.
type ModelCall struct {
	Call
	// Number counts the calls of the session from 1, in the order in which they
	// were reported.
	Number uint32
	Time   time.Time
	// EstimatedTokens is the size of the prompt by the gauge, uncalibrated. This field and the next ones up
	// to InForce are zero without a projection.
	EstimatedTokens uint64
	Tokenizer       string
	// BudgetModel is the model of the projection's budget; its name may differ from Model.
	BudgetModel string
	Fingerprint string
	InForce     InForce
	// After is the newest projection of the session when the call was reported.
	After string
	// Calibration is what was learnt of the model up to and including this call.
	Calibration budget.Calibration
}

// InForce has the decisions that were in force in a projection.
type InForce struct {
	// SummaryID names the summary, and SummaryVersion the version of the rules for making it; empty and 0
	// if there was none.
	SummaryID      string
	SummaryVersion uint32
	// CollapsedThrough is the event through which messages had been dropped.
	CollapsedThrough eventlog.Seq
	// EvictedAsOf is the event at which results were last evicted by age.
	EvictedAsOf eventlog.Seq
}

// inForce reads the decisions from a record, and the summary's version from the stored summaries.
func inForce(ctx context.Context, store eventlog.Artifacts, sessionID string, r Projection) (InForce, error) {
	in := InForce{
		SummaryID: r.After.Summary, SummaryVersion: r.SummaryVersion,
		CollapsedThrough: r.After.CollapsedThrough, EvictedAsOf: r.After.EvictedAsOf,
	}
	if in.SummaryID == "" || in.SummaryVersion != 0 {
		return in, nil
	}
	// The record does not have the version.
	s, err := summarize.Get(ctx, store, sessionID, in.SummaryID)
	if eventlog.IsMissing(err, "summary") {
		return in, nil
	}
	in.SummaryVersion = s.Version
	return in, err
}

// estimate returns the size of the prompt made from a projection: context, injections, and the overhead that the
// caller declared.
func estimate(r Projection) uint64 { return r.Tokens + r.Injected + r.Budget.OverheadTokens }

// Report stores a call next to the log, durable on return, and returns the calibration of its model from now on. head
// is the log's head. of, if not 0, is the incarnation of the session that is meant. Calls of one session must be
// reported one after the other. *eventlog.NotFoundError if there is no such session or projection.
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
	// A call's calibration is derived from earlier calls. It is stored at their event or later, so that a
	// fork with this call has those, too.
	return c.Calibration, c.put(ctx, store, of, max(at, newest.Seq))
}

// Sent returns the projection from which a call was made; *eventlog.NotFoundError if there is none.
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

// learn returns the calibration of the call's model with this call included.
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

// CallsAfter lists at most limit recorded calls with numbers greater than after, in order. next is the number of the
// last one if there are more, else 0.
func CallsAfter(ctx context.Context, store eventlog.Artifacts, sessionID string, after uint32, limit int) (page []ModelCall, next uint32, err error) {
	q := eventlog.ArtifactQuery{Kind: callKind}
	if after > 0 {
		from, err := callsFrom(ctx, store, sessionID, after)
		if err != nil {
			return nil, 0, err
		}
		q.After = &eventlog.Artifact{Seq: from, ID: callID(after)}
	}
	for a, err := range store.Artifacts(ctx, sessionID, q) {
		if err != nil {
			return nil, 0, err
		}
		if len(page) == limit {
			return page, page[limit-1].Number, nil
		}
		c, err := decodeCall(sessionID, a)
		if err != nil {
			return nil, 0, err
		}
		page = append(page, c)
	}
	return page, 0, nil
}

// GetCall returns one recorded call (number 0 is the newest), or *eventlog.NotFoundError.
func GetCall(ctx context.Context, store eventlog.Artifacts, sessionID string, number uint32) (ModelCall, error) {
	none := &eventlog.NotFoundError{Kind: "call", Name: fmt.Sprint(number)}
	if number == 0 {
		newest, found, err := artifact.Newest(ctx, store, sessionID, callKind, 0)
		switch {
		case err != nil:
			return ModelCall{}, err
		case !found:
			return ModelCall{}, none
		}
		return decodeCall(sessionID, newest)
	}
	at, err := callsFrom(ctx, store, sessionID, number)
	if err != nil {
		return ModelCall{}, err
	}
	a, err := store.Artifact(ctx, sessionID, callKind, at, callID(number))
	if eventlog.IsMissing(err, "artifact") {
		return ModelCall{}, none
	}
	if err != nil {
		return ModelCall{}, err
	}
	return decodeCall(sessionID, a)
}

// callsFrom returns the first event at which a call has this number or a greater one; if there is no such
// call, the event after all calls. Numbers grow with the events, so it searches by bisection.
func callsFrom(ctx context.Context, store eventlog.Artifacts, sessionID string, number uint32) (eventlog.Seq, error) {
	newest, _, err := artifact.Newest(ctx, store, sessionID, callKind, 0)
	at := sort.Search(int(newest.Seq), func(i int) bool {
		if err != nil {
			return true
		}
		var a eventlog.Artifact
		a, _, err = artifact.Newest(ctx, store, sessionID, callKind, eventlog.Seq(i)+1)
		return a.ID >= callID(number)
	})
	if at > 0 || err != nil {
		return eventlog.Seq(at) + 1, err
	}
	// A query cannot end at event 0, where calls are whose projection is of an empty log.
	for a, err := range store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: callKind, After: &eventlog.Artifact{ID: callID(number - 1)}}) {
		return a.Seq, err
	}
	return 1, nil
}

// Calibration returns what calls up to asOf taught about prompts under the budget. rejected is not 0 if the
// last of them was refused as too long, and no context was recorded for its model since. It is the
// estimated size of the refused context in tokens, without injections and overhead; the next context must
// be smaller.
func Calibration(ctx context.Context, store eventlog.Artifacts, sessionID string, asOf eventlog.Seq, b budget.Budget) (c budget.Calibration, rejected uint64, err error) {
	if asOf == 0 {
		return budget.Calibration{}, 0, nil
	}
	last, err := lastCall(ctx, store, sessionID, asOf, b.Model, b.Tokenizer)
	if err != nil || !last.Rejected || last.ProjectionID == "" {
		return last.Calibration, 0, err
	}
	for r, err := range Projections(ctx, store, sessionID, eventlog.ArtifactQuery{To: asOf, Reverse: true}) {
		if err != nil {
			return budget.Calibration{}, 0, err
		}
		if !newer(r.ID, last.After) {
			break
		}
		if r.Budget.Tokenizer == b.Tokenizer && (r.Budget.Model == b.Model || r.Budget.Model == last.BudgetModel) {
			return last.Calibration, 0, nil
		}
	}
	sent, err := last.Sent(ctx, store)
	return last.Calibration, sent.Tokens, err
}

// lastCall returns the newest call from which the calibration of a model under a tokenizer is taken: one
// reported under the model's name, or sent under a budget for it. Calls without a projection have no
// tokenizer. An empty tokenizer matches any, and asOf 0 is no bound. The result is zero if there is none.
func lastCall(ctx context.Context, store eventlog.Artifacts, sessionID string, asOf eventlog.Seq, model, tokenizer string) (ModelCall, error) {
	a, ok, err := artifact.Newest(ctx, store, sessionID, modelKind(model, tokenizer), asOf)
	if !ok || err != nil {
		return ModelCall{}, err
	}
	return decodeCall(sessionID, a)
}
