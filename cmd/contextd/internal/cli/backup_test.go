package cli

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/contextd/contextd/internal/log/disklog/backup"
	adminv1 "github.com/contextd/contextd/proto/contextd/admin/v1"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// deleting is a daemon in which a session is deleted each time a backup has received one more large file.
type deleting struct {
	adminv1.AdminServiceClient
	calls  int
	remove func()
}

func (d *deleting) Backup(ctx context.Context, req *adminv1.BackupRequest, opts ...grpc.CallOption) (grpc.ServerStreamingClient[adminv1.BackupResponse], error) {
	d.calls++
	stream, err := d.AdminServiceClient.Backup(ctx, req, opts...)
	return &deletingStream{stream, d.remove, 0}, err
}

type deletingStream struct {
	grpc.ServerStreamingClient[adminv1.BackupResponse]
	remove func()
	large  int
}

func (s *deletingStream) Recv() (*adminv1.BackupResponse, error) {
	resp, err := s.ServerStreamingClient.Recv()
	if f := resp.GetFile(); f.GetSize() > 1<<20 && !f.GetHeld() {
		if s.large++; s.large == 2 {
			s.remove()
		}
	}
	return resp, err
}

// TestBackupAmongDeletions: a backup completes although sessions are deleted all the time, and has none of
// these.
func TestBackupAmongDeletions(t *testing.T) {
	c := &client{program: Program{Stderr: io.Discard, LookupEnv: func(string) (string, bool) { return "", false }}, creates: true, embedded: filepath.Join(t.TempDir(), "data")}
	conn, stop, err := c.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	daemon := newAPI(conn)
	do := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const kept = 50
	create := func(id string) {
		do(daemon.CreateSession(t.Context(), &contextdv1.CreateSessionRequest{SessionId: id}))
	}
	// More data than is in flight at once, in many tables.
	noise := rand.NewChaCha8([32]byte{})
	for i := range kept {
		text := make([]byte, 384<<10)
		_, _ = noise.Read(text)
		do(daemon.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: fmt.Sprintf("kept-%d", i), Events: []*contextdv1.Event{{
			Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{Role: contextdv1.Role_ROLE_USER, Blocks: []*contextdv1.Block{
				{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: hex.EncodeToString(text)}}},
			}}},
		}}}))
	}
	removed := 0
	among := &deleting{AdminServiceClient: daemon.admin, remove: func() {
		removed++
		id := fmt.Sprintf("secret-%d", removed)
		create(id)
		do(daemon.DeleteSession(t.Context(), &contextdv1.DeleteSessionRequest{SessionId: id}))
	}}
	daemon.admin = among
	dir := filepath.Join(t.TempDir(), "backup")
	b := taking{disk: vfs.Default, there: map[string]backup.File{}, progress: &progress{}}
	if b.draft, err = backup.Begin(b.disk, dir); err != nil {
		t.Fatal(err)
	}
	cmd := &cobra.Command{}
	cmd.SetErr(io.Discard)
	if err := b.finish(cmd, c.output, dir, b.takeAll(t.Context(), daemon)); err != nil {
		t.Fatal(err)
	}
	if among.calls <= backupTries {
		t.Errorf("%d calls: deletions hardly ended any", among.calls)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	faults, err := backup.Faults(t.Context(), vfs.Default, dir)
	if err != nil || len(faults) > 0 {
		t.Errorf("%v %v", faults, err)
	}
	files := 0
	err = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files++
		}
		return err
	})
	if err != nil || files != len(b.made.Files)+1 {
		t.Errorf("%d files, of which the list names %d: %v", files, len(b.made.Files), err)
	}
	of := *c
	of.embedded = dir
	if conn, stop, err = of.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := newAPI(conn).ListSessions(t.Context(), &contextdv1.ListSessionsRequest{PageSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range got.GetSessions() {
		if !strings.HasPrefix(s.GetSessionId(), "kept-") {
			t.Errorf("it has %s", s.GetSessionId())
		}
	}
	if len(got.GetSessions()) != kept {
		t.Errorf("it has %d sessions", len(got.GetSessions()))
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// TestRestoreIsInterrupted: an interrupted restore ends, and the directory is empty again.
func TestRestoreIsInterrupted(t *testing.T) {
	data, dir := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "backup")
	makeStore(t, data, "s", "said")
	p := Program{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, LookupEnv: func(string) (string, bool) { return "", false }}
	if code := p.Run(t.Context(), []string{"backup", dir, "--embedded", data}); code != ExitOK {
		t.Fatalf("backup: exit %d", code)
	}
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	restored := filepath.Join(t.TempDir(), "restored")
	if code := p.Run(interrupted, []string{"restore", dir, restored}); code != ExitFailure {
		t.Errorf("exit %d", code)
	}
	if left, err := os.ReadDir(restored); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}
