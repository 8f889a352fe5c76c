package daemon

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/auth"
	adminv1 "github.com/contextd/contextd/proto/contextd/admin/v1"
)

type backupStream struct {
	grpc.ServerStreamingServer[adminv1.BackupResponse]
	ctx context.Context
}

func (s backupStream) Context() context.Context { return s.ctx }

// A tenant gets no backup, whatever store there is.
func TestBackupIsForNoTenant(t *testing.T) {
	a := &admin{}
	of := backupStream{ctx: auth.With(t.Context(), auth.Identity{Tenant: "acme"})}
	if err := a.Backup(&adminv1.BackupRequest{}, of); !errors.As(err, new(*auth.DeniedError)) {
		t.Errorf("a tenant's call: %v", err)
	}
	of.ctx = t.Context()
	if err := a.Backup(&adminv1.BackupRequest{}, of); !errors.As(err, new(*apierr.NotConfiguredError)) {
		t.Errorf("without a store on disk: %v", err)
	}
}
