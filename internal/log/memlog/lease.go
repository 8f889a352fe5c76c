package memlog

import (
	"context"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Lease always grants: no other process writes to the store.
func (s *Store) Lease(ctx context.Context, id string, of eventlog.Incarnation, _ string, _ time.Duration) (bool, error) {
	found, err := s.Session(ctx, id)
	if err == nil && of != 0 && of != found.Incarnation {
		err = &eventlog.NotFoundError{Kind: "session", Name: id}
	}
	return err == nil, err
}

// Release does nothing: nobody waits.
func (s *Store) Release(context.Context, string, eventlog.Incarnation, string) error { return nil }
