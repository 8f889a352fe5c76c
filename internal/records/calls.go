package records

import (
	"context"
	"fmt"

	"github.com/contextd/contextd/internal/artifact"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Calls lists the recorded calls of a session in the order of their numbers.
func Calls(ctx context.Context, store eventlog.Artifacts, sessionID string) ([]ModelCall, error) {
	var out []ModelCall
	for a, err := range store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: callKind}) {
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

// GetCall returns one recorded call, number 0 the newest, or *eventlog.NotFoundError.
func GetCall(ctx context.Context, store eventlog.Artifacts, sessionID string, number uint32) (ModelCall, error) {
	for a, err := range store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: callKind, Reverse: true}) {
		if err != nil {
			return ModelCall{}, err
		}
		if number == 0 || a.ID == callID(number) {
			return decodeCall(sessionID, a)
		}
	}
	return ModelCall{}, &eventlog.NotFoundError{Kind: "call", Name: fmt.Sprint(number)}
}

// Calibration is what the calls up to asOf taught about prompts under the budget.
// rejected is not 0 if the last of them was refused as too long and no context was
// recorded for its model since: the size of that prompt as it was estimated, in
// tokens. The next one must become smaller, whatever the target says.
func Calibration(ctx context.Context, store eventlog.Artifacts, sessionID string, asOf eventlog.Seq, b budget.Budget) (c budget.Calibration, rejected uint64, err error) {
	if asOf == 0 {
		return budget.Calibration{}, 0, nil
	}
	last, err := lastCall(ctx, store, sessionID, asOf, b.Model, b.Tokenizer)
	if err != nil || !last.Rejected {
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
	return last.Calibration, last.EstimatedTokens, nil
}

// lastCall is the newest call that says something of a model's prompts as the
// tokenizer counts them: one that was reported under its name, or sent under a
// budget for it. Calls from no projection have no tokenizer. An empty tokenizer is
// any, and asOf 0 is no bound. It is zero where there is none.
func lastCall(ctx context.Context, store eventlog.Artifacts, sessionID string, asOf eventlog.Seq, model, tokenizer string) (ModelCall, error) {
	a, ok, err := artifact.Newest(ctx, store, sessionID, modelKind(model, tokenizer), asOf)
	if !ok || err != nil {
		return ModelCall{}, err
	}
	return decodeCall(sessionID, a)
}
