package daemon

import (
	"errors"
	"io"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/auth"
	"github.com/contextd/contextd/internal/log/disklog"
	adminv1 "github.com/contextd/contextd/proto/contextd/admin/v1"
)

// admin implements the services for operators.
type admin struct {
	adminv1.UnimplementedAdminServiceServer
	store  *disklog.Store // nil if the store is not on disk
	clock  func() time.Time
	logger *slog.Logger
}

// backupChunk is how much of a file is sent at once.
const backupChunk = 64 << 10

// Backup sends a snapshot of the store.
func (a *admin) Backup(req *adminv1.BackupRequest, stream grpc.ServerStreamingServer[adminv1.BackupResponse]) (err error) {
	ctx := stream.Context()
	if auth.Of(ctx).Tenant != "" {
		return &auth.DeniedError{Reason: "a backup has the sessions of all tenants"}
	}
	if a.store == nil {
		return &apierr.NotConfiguredError{Setting: "store", Reason: "the store is not on disk: there is nothing that this could back up"}
	}
	begun := a.clock()
	snapshot, err := a.store.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snapshot.Close()) }()
	since := time.Time{}
	if req.GetSince() != nil {
		since = req.GetSince().AsTime()
	}
	have := map[string]bool{}
	for _, name := range req.GetHave() {
		have[name] = true
	}
	for _, f := range snapshot.Files {
		held := f.Immutable && (f.Modified.Before(since) || have[f.Name])
		part := &adminv1.BackupFile{Name: f.Name, Size: uint64(f.Size), ModifyTime: timestamppb.New(f.Modified), Held: held}
		if err := stream.Send(&adminv1.BackupResponse{Part: &adminv1.BackupResponse_File{File: part}}); err != nil {
			return err
		}
		if held {
			continue
		}
		if err := sendFile(stream, snapshot, f); err != nil {
			return err
		}
	}
	a.logger.InfoContext(ctx, "backup taken", "files", len(snapshot.Files))
	return stream.Send(&adminv1.BackupResponse{Part: &adminv1.BackupResponse_End{End: &adminv1.BackupEnd{Time: timestamppb.New(begun)}}})
}

func sendFile(stream grpc.ServerStreamingServer[adminv1.BackupResponse], snapshot *disklog.Snapshot, f disklog.SnapshotFile) (err error) {
	file, err := snapshot.Open(f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for {
		data := make([]byte, backupChunk)
		n, err := io.ReadFull(file, data)
		if n > 0 {
			if err := stream.Send(&adminv1.BackupResponse{Part: &adminv1.BackupResponse_Data{Data: data[:n]}}); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}
