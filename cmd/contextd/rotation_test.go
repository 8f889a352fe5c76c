package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/client"
	"github.com/contextd/contextd/cmd/contextd/internal/auth/authtest"
	"github.com/contextd/contextd/cmd/contextd/internal/health"
)

// rotation is a daemon whose files, and whose client's files, are replaced while calls are made.
type rotation struct {
	*process
	folder    string
	authority *authtest.Authority
	kept      *grpc.ClientConn // connected from the beginning
	address   string
}

func newRotation(t *testing.T) *rotation {
	r := &rotation{folder: t.TempDir(), address: freeAddress(t)}
	r.authority = authtest.NewAuthority(t, r.folder)
	r.issue(t)
	cmd := exec.Command(build(t), "serve", "--listen="+r.address, "--log-format=json",
		"--tls-cert="+r.path("cert.pem"), "--tls-key="+r.path("key.pem"), "--tls-client-ca="+r.path("ca.pem"))
	r.process = spawn(t, cmd)
	r.kept = r.connect(t)
	r.call(t, r.kept)
	return r
}

func (r *rotation) path(name string) string { return filepath.Join(r.folder, name) }

// issue writes new certificates and keys for both sides.
func (r *rotation) issue(t *testing.T) {
	t.Helper()
	r.authority.Issue(t, r.path("cert.pem"), r.path("key.pem"), "127.0.0.1")
	r.authority.Issue(t, r.path("client.pem"), r.path("client.key"), "agent")
}

func (r *rotation) connect(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := client.Dial(r.address, client.Credentials{CA: r.path("ca.pem"), Certificate: r.path("client.pem"), Key: r.path("client.key")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (r *rotation) call(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	if err := check(t, conn, ""); err != nil {
		t.Errorf("a call: %v\n%s", err, r.log)
	}
}

func check(t *testing.T, conn *grpc.ClientConn, part string) error {
	t.Helper()
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: part})
	if err == nil && answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		err = fmt.Errorf("%s is %v", part, answer.GetStatus())
	}
	return err
}

// reload makes the daemon read its files, and waits for the log line with the result.
func (r *rotation) reload(t *testing.T, line string) {
	t.Helper()
	seen := strings.Count(r.log.String(), line)
	if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return strings.Count(r.log.String(), line) > seen })
}

// await polls a condition for at most a minute.
func await(t *testing.T, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !so() {
		if ctx.Err() != nil {
			t.Fatal("it is not so after a minute")
		}
		runtime.Gosched()
	}
}

const (
	reloaded    = `"a file was reloaded"`
	notReloaded = `"a file was not reloaded; what was read before stays in force"`
)

// TestFilesAreReplacedWhileServing replaces certificates and authorities while a daemon serves. No call may
// fail. Files that do not fit together are reported and not used.
func TestFilesAreReplacedWhileServing(t *testing.T) {
	r := newRotation(t)
	r.issue(t)
	r.reload(t, reloaded)
	r.call(t, r.kept)
	r.call(t, r.connect(t))

	r.authority.Issue(t, r.path("other.pem"), r.path("key.pem"), "127.0.0.1")
	r.reload(t, notReloaded)
	r.call(t, r.kept)
	r.call(t, r.connect(t))
	await(t, func() bool { return check(t, r.kept, health.Callers) != nil })
	if err := os.Rename(r.path("other.pem"), r.path("cert.pem")); err != nil {
		t.Fatal(err)
	}
	r.reload(t, reloaded)
	await(t, func() bool { return check(t, r.kept, health.Callers) == nil })
	r.call(t, r.connect(t))

	// The authority gets another certificate for the same key.
	r.authority.Renew(t)
	r.reload(t, reloaded)
	r.call(t, r.kept)
	r.call(t, r.connect(t))

	// Another authority. A client that was created before uses the new files when it connects.
	late := r.connect(t)
	r.authority = authtest.NewAuthority(t, r.folder)
	r.issue(t)
	r.reload(t, reloaded)
	if err := check(t, r.kept, ""); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a connection of an authority that was removed: %v", err)
	}
	r.call(t, late)
}
