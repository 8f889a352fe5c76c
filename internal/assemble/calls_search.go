package assemble

import (
	"cmp"
	"context"
	"fmt"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
)

// callSearch bounds how many calls are looked at for the last one of a model.
const callSearch = 64

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
	r, err := e.search(ctx, sessionID, asOf, keySearch, func(r projection.Record) bool {
		return r.Budget.Tokenizer == b.Tokenizer && (r.Budget.Model == b.Model || r.Budget.Model == last.BudgetModel)
	})
	if err != nil {
		return budget.Calibration{}, 0, err
	}
	if r != nil && newerProjection(r.ID, last.After) {
		return last.Calibration, 0, nil
	}
	return last.Calibration, last.EstimatedTokens, nil
}

// lastCall is the newest call that says something of a model's prompts as the
// tokenizer counts them: one that was reported under its name, or sent under a
// budget for it. Calls from no projection have no tokenizer. An empty tokenizer is
// any, and asOf 0 is no bound. It is zero where none of the last callSearch calls
// does.
func (e *Engine) lastCall(ctx context.Context, sessionID string, asOf eventlog.Seq, model, tokenizer string) (RecordedCall, error) {
	looked := 0
	for a, err := range e.store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: callKind, To: asOf, Reverse: true}) {
		if err != nil {
			return RecordedCall{}, err
		}
		c, err := decodeCall(sessionID, a)
		if err != nil {
			return RecordedCall{}, err
		}
		if (c.Model == model || c.BudgetModel == model) && (tokenizer == "" || c.Tokenizer == tokenizer) {
			return c, nil
		}
		if looked++; looked == callSearch {
			break
		}
	}
	return RecordedCall{}, nil
}

// callPlace is where the newest call of a session stands.
type callPlace struct {
	Number uint32
	seq    eventlog.Seq
}

func (e *Engine) newestCall(ctx context.Context, sessionID string) (callPlace, error) {
	for a, err := range e.store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: callKind, Reverse: true}) {
		if err != nil {
			return callPlace{}, err
		}
		number, err := numberOf(a.ID)
		return callPlace{number, a.Seq}, err
	}
	return callPlace{}, nil
}

// newestProjection is the id of the last projection, empty if there is none.
func (e *Engine) newestProjection(ctx context.Context, sessionID string) (string, error) {
	for a, err := range e.store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: recordKind, Reverse: true}) {
		return a.ID, err
	}
	return "", nil
}

// newerProjection reports whether the first of two projections was recorded behind
// the second. Their numbers at one event have at least four digits.
func newerProjection(a, b string) bool {
	atA, _ := asOfOf(a)
	atB, _ := asOfOf(b)
	return cmp.Or(cmp.Compare(atA, atB), cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) > 0
}
