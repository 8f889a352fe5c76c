package assemble

import (
	"context"
	"fmt"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// Undo takes back the compaction at event from and all later ones; 0 is the newest in effect. It returns
// the events of those taken back, oldest first; none if none is in effect. mark appends the event that
// records the undo; durable on return.
func (e *Engine) Undo(ctx context.Context, sessionID string, from eventlog.Seq, mark func(context.Context, *eventlog.Compaction) error) ([]eventlog.Seq, error) {
	_, release, err := e.sessions.acquire(ctx, sessionID)
	if err != nil {
		return nil, err
	}
	defer release()
	standing, err := e.compactions(ctx, sessionID)
	if err != nil {
		return nil, err
	}
	at := slices.Index(standing, from)
	switch {
	case from != 0 && at < 0:
		return nil, &eventlog.InvalidError{Field: "compaction_seq", Reason: fmt.Sprintf("event %d is not a compaction in effect; %s", from, whichAre(standing))}
	case len(standing) == 0:
		return nil, nil
	case from == 0:
		at = len(standing) - 1
	}
	err = mark(ctx, &eventlog.Compaction{Strategy: strategyUndo, Decision: &eventlog.CompactionDecision{Undoes: standing[at]}})
	return standing[at:], err
}

// strategyUndo is the strategy in the event of an undo.
const strategyUndo = "undo"

// compactions returns the events of a session's callers' compactions that are in effect.
func (e *Engine) compactions(ctx context.Context, sessionID string) ([]eventlog.Seq, error) {
	info, err := e.store.Session(ctx, sessionID)
	if err != nil || info.Head == 0 {
		return nil, err
	}
	var all reduce.Compactions
	for event, err := range e.store.Read(ctx, sessionID, 1, info.Head) {
		if err != nil {
			return nil, err
		}
		all.Read(event)
	}
	return all.InForce(), nil
}

// whichAre names the events of the compactions in effect.
func whichAre(all []eventlog.Seq) string {
	if len(all) == 0 {
		return "none is"
	}
	return "these are: " + strings.Trim(fmt.Sprint(all), "[]")
}
