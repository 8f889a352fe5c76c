package assemble

import (
	"cmp"
	"context"
	"fmt"

	"github.com/contextd/contextd/internal/artifact"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Calls lists the recorded calls of a session in the order of their numbers.
func (e *Engine) Calls(ctx context.Context, sessionID string) ([]RecordedCall, error) {
	var out []RecordedCall
	for a, err := range e.store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: callKind}) {
		if err != nil {
			return nil, err
		}
		c, err := decodeCall(sessionID, a)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// Call returns one recorded call, number 0 the newest, or *eventlog.NotFoundError.
func (e *Engine) Call(ctx context.Context, sessionID string, number uint32) (RecordedCall, error) {
	for a, err := range e.store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: callKind, Reverse: true}) {
		if err != nil {
			return RecordedCall{}, err
		}
		if number == 0 || a.ID == callID(number) {
			return decodeCall(sessionID, a)
		}
	}
	return RecordedCall{}, &eventlog.NotFoundError{Kind: "call", Name: fmt.Sprint(number)}
}

// calibration is what the calls up to asOf taught about prompts under the budget.
// rejected is not 0 if the last of them was refused as too long and no context was
// recorded for its model since: the size of that prompt as it was estimated, in
// tokens. The next one must become smaller, whatever the target says. The caller
// may hold the session.
func (e *Engine) calibration(ctx context.Context, sessionID string, asOf eventlog.Seq, b budget.Budget) (c budget.Calibration, rejected uint64, err error) {
	if asOf == 0 {
		return budget.Calibration{}, 0, nil
	}
	last, err := e.lastCall(ctx, sessionID, asOf, b.Model, b.Tokenizer)
	if err != nil || !last.Rejected {
		return last.Calibration, 0, err
	}
	for r, err := range e.records(ctx, sessionID, asOf) {
		if err != nil {
			return budget.Calibration{}, 0, err
		}
		if !newerProjection(r.ID, last.After) {
			break
		}
		if r.Budget.Tokenizer == b.Tokenizer && (r.Budget.Model == b.Model || r.Budget.Model == last.BudgetModel) {
			return last.Calibration, 0, nil
		}
	}
	return last.Calibration, last.EstimatedTokens, nil
}

// lastCall is the newest call that says something of a model's prompts as the
// tokenizer counts them: one that was reported under its name, or sent under a
// budget for it. Calls from no projection have no tokenizer. An empty tokenizer is
// any, and asOf 0 is no bound. It is zero where there is none.
func (e *Engine) lastCall(ctx context.Context, sessionID string, asOf eventlog.Seq, model, tokenizer string) (RecordedCall, error) {
	a, ok, err := artifact.Newest(ctx, e.store, sessionID, modelKind(model, tokenizer), asOf)
	if !ok || err != nil {
		return RecordedCall{}, err
	}
	return decodeCall(sessionID, a)
}

// newestProjection is the id of the newest recorded projection: of those with the
// greatest as-of, the one that was recorded last. It is empty where there is none.
func (e *Engine) newestProjection(ctx context.Context, sessionID string) (string, error) {
	a, _, err := artifact.Newest(ctx, e.store, sessionID, recordKind, 0)
	return a.ID, err
}

// newerProjection reports whether the first of two projections was recorded after
// the second; see nextID for their numbers at one event.
func newerProjection(a, b string) bool {
	atA, _ := asOfOf(a)
	atB, _ := asOfOf(b)
	return cmp.Or(cmp.Compare(atA, atB), cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) > 0
}
