package memlog

import (
	"context"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Lease always grants: no other process writes to the store.
func (s *Store) Lease(ctx context.Context, id string, of eventlog.Incarnation, _ string, _ time.Duration) (bool, error) {
	return eventlog.LeaseAlone(ctx, s, id, of)
}

// Release does nothing: nobody waits.
func (s *Store) Release(context.Context, string, eventlog.Incarnation, string) error { return nil }
