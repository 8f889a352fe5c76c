package server_test

import (
	"context"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func compacting(req *contextdv1.CompactSessionRequest) func(context.Context, *api) error {
	return func(ctx context.Context, a *api) error {
		_, err := a.compaction.CompactSession(ctx, req)
		return err
	}
}
