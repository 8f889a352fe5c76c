package assemble

import (
	"context"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Newest names the newest recorded projection of a session: of those with the
// greatest as-of, the one that was recorded last. *eventlog.NotFoundError where none
// was recorded.
func (e *Engine) Newest(ctx context.Context, sessionID string) (string, error) {
	for a, err := range e.store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: recordKind, Reverse: true}) {
		if err != nil {
			return "", err
		}
		return a.ID, nil
	}
	return "", &eventlog.NotFoundError{Kind: "projection", Name: "of " + sessionID}
}
