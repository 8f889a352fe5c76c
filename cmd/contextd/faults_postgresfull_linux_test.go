package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/contextd/contextd/cmd/contextd/internal/health"
	"github.com/contextd/contextd/internal/log/pglog/pgtest"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestFaultDatabaseFull fills the tablespace of the daemon's tables. The daemon must still read and delete,
// and accept appends once there is space. The test enlarges the disk, since a vacuum needs space itself.
func TestFaultDatabaseFull(t *testing.T) {
	dir := ownDisk(t, "24m")
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	if server == nil {
		t.Skip("SKIPPED: no PostgreSQL is installed (Debian's package postgresql)")
	}
	defer server.Stop()
	for _, err := range []error{os.Chmod(filepath.Dir(dir), 0o755), server.Own(dir)} { //nolint:gosec // the server's user must be able to enter the directory
		if err != nil {
			t.Fatal(err)
		}
	}
	server.Exec(t, server.DSN(""), `CREATE TABLESPACE small LOCATION '`+dir+`'`)
	dsn := server.DSN("") + ` default_tablespace=small`
	cmd := exec.Command(build(t), "serve", "--listen=", "--store=postgres", "--default-budget={tokenizer: heuristic}")
	cmd.Env = append(cmd.Environ(), "CONTEXTD_POSTGRES_DSN="+dsn)
	p := spawn(t, cmd)
	client := contextdv1.NewContextServiceClient(p.conn)
	acked := map[string]int{}
	fill := func(from int) error {
		for n := from; ; n++ {
			session := fmt.Sprintf("s%d", n%2)
			if err := appendNoise(t.Context(), client, session, n); err != nil {
				return err
			}
			acked[session]++
		}
	}
	expectDiskFull(t, fill(0))
	if got := partOf(t, p, health.Store); got != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("the health of the store is %s", got)
	}
	readAllOf(t, client, acked)
	if _, err := client.DeleteSession(t.Context(), &contextdv1.DeleteSessionRequest{SessionId: "s0"}); err != nil {
		t.Fatalf("delete on a full disk: %v", err)
	}
	delete(acked, "s0")
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	if err := appendNoise(t.Context(), client, "s1", -1); err != nil {
		t.Fatalf("with room: %v\n%s", err, p.log)
	}
	acked["s1"]++
	readAllOf(t, client, acked)
}
