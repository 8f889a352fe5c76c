package server_test

import (
	"context"

	eventlog "github.com/contextd/contextd/internal/log"
)

// gatedStore is a store on a slow disk: an append is durable when the test says
// so.
type gatedStore struct {
	eventlog.Store
	// admitted is notified of every append that has its place.
	admitted chan string
	// sync lets one Wait return for every value, with that error.
	sync chan error
}

func newGatedStore(store eventlog.Store) *gatedStore {
	return &gatedStore{Store: store, admitted: make(chan string, 1024), sync: make(chan error)}
}

func (g *gatedStore) Append(ctx context.Context, id string, b eventlog.Batch) (eventlog.Commit, error) {
	commit, err := g.Store.Append(ctx, id, b)
	if err != nil {
		return nil, err
	}
	g.admitted <- b.Events[0].ID
	return gatedCommit{commit, g}, nil
}

type gatedCommit struct {
	eventlog.Commit
	gate *gatedStore
}

func (c gatedCommit) Wait(ctx context.Context) ([]eventlog.Receipt, error) {
	select {
	case err := <-c.gate.sync:
		if err != nil {
			return nil, err
		}
		return c.Commit.Wait(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
