package assemble

import (
	"context"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Newest names the newest recorded projection of a session: of those with the
// greatest as-of, the one that was recorded last. *eventlog.NotFoundError where none
// was recorded.
func (e *Engine) Newest(ctx context.Context, sessionID string) (string, error) {
	id, err := e.newestProjection(ctx, sessionID)
	if id == "" && err == nil {
		err = &eventlog.NotFoundError{Kind: "projection", Name: "of " + sessionID}
	}
	return id, err
}
