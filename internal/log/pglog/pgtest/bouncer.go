package pgtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Bouncer is a pgbouncer in transaction mode.
type Bouncer struct {
	path, dir string
	server    *Server
	process   *exec.Cmd
}

// StartBouncer starts a pgbouncer before a server, and stops it when the test ends. The test is skipped if no
// pgbouncer is installed.
func StartBouncer(t testing.TB, server *Server) *Bouncer {
	t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		if path = "/usr/sbin/pgbouncer"; !executable(path) {
			t.Skip("SKIPPED: no pgbouncer is installed (Debian's package pgbouncer)")
		}
	}
	dir, err := os.MkdirTemp("", "pgbouncer") //nolint:usetesting // a socket has a short path
	if err != nil {
		t.Fatal(err)
	}
	b := &Bouncer{path: path, dir: dir, server: server}
	t.Cleanup(b.Stop)
	if server.as != nil {
		if err := os.Chown(dir, int(server.as.Uid), int(server.as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Launch(server); err != nil {
		t.Fatal(err)
	}
	return b
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&0o111 != 0
}

// Launch starts it, or again after Kill, and waits until it answers.
func (b *Bouncer) Launch(server *Server) error {
	b.server = server
	config, users := filepath.Join(b.dir, "pgbouncer.ini"), filepath.Join(b.dir, "users")
	names := []byte(`"tester" ""` + "\n")
	for n := range bouncerRoles {
		names = fmt.Appendf(names, "%q \"\"\n", roleName(n+1))
	}
	if err := os.WriteFile(users, names, 0o644); err != nil { //nolint:gosec // it runs as another user
		return err
	}
	text := fmt.Sprintf(`[databases]
postgres = host=%s port=5432
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = %s
auth_type = trust
auth_file = %s
max_db_connections = 40
pool_mode = transaction
default_pool_size = %d
server_login_retry = 1
log_connections = 0
log_disconnections = 0
max_client_conn = 1000
`, server.dir, b.dir, users, BouncerPool)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil { //nolint:gosec // it runs as another user
		return err
	}
	b.process = exec.Command(b.path, "-q", config)
	b.process.SysProcAttr, b.process.Dir = &syscall.SysProcAttr{Credential: server.as}, b.dir
	if err := b.process.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, b.DSN("tester"))
		if err == nil {
			return conn.Close(ctx)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("pgbouncer does not start: %w", err)
		}
		time.Sleep(10 * time.Millisecond) // nothing reports it
	}
}

// BouncerPool is how many connections to the server it has for a role.
const BouncerPool = 8

// bouncerRoles is how many roles of Server.SchemaRole it knows.
const bouncerRoles int64 = 1000

// DSN returns the server's address through it, for a role, with a mode of statements that works in transaction mode.
func (b *Bouncer) DSN(role string) string {
	return fmt.Sprintf("host=%s port=6432 user=%s dbname=postgres default_query_exec_mode=cache_describe", b.dir, role)
}

// Kill ends it by signal 9.
func (b *Bouncer) Kill() {
	_ = b.process.Process.Kill()
	_ = b.process.Wait()
	_ = os.Remove(filepath.Join(b.dir, ".s.PGSQL.6432"))
}

// Stop ends it and removes its directory.
func (b *Bouncer) Stop() {
	if b.process != nil {
		b.Kill()
	}
	_ = os.RemoveAll(b.dir)
}
