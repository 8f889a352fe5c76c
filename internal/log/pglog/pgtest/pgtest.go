// Package pgtest starts PostgreSQL servers for tests, in temporary directories and only on unix sockets.
package pgtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a server that runs until the tests end.
type Server struct {
	bin     string
	set     []string
	dir     string
	as      *syscall.Credential
	process *exec.Cmd
	schemas atomic.Int64
}

// binaries returns the directory with the newest server that is installed; empty if none is.
func binaries() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path)
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // where Debian has them
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(slices.Max(found))
}

// Installed reports whether there is a PostgreSQL to start.
func Installed() bool { return binaries() != "" }

// Start starts a server; nil if no PostgreSQL is installed. settings are the server's own, such as "fsync=on". By
// default the server takes few resources, and loses its data if the machine fails.
func Start(settings ...string) (*Server, error) {
	s, err := newServer(settings...)
	if s == nil || err != nil {
		return nil, err
	}
	err = s.tool("initdb", "-D", s.data(), "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if err == nil {
		err = s.Launch()
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// newServer returns a server that has no data and does not run yet; nil if no PostgreSQL is installed.
func newServer(settings ...string) (*Server, error) {
	bin := binaries()
	if bin == "" {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir, set: settings}
	s.as, err = s.account()
	return s, err
}

// tool runs one of PostgreSQL's programs as the server's user.
func (s *Server) tool(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.SysProcAttr, cmd.Dir = &syscall.SysProcAttr{Credential: s.as}, s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Launch starts the server, or again after Crash or Kill, and waits until it answers.
func (s *Server) Launch() error {
	args := []string{"-D", s.data(), "-k", s.dir}
	for _, setting := range append([]string{"listen_addresses=", "fsync=off", "shared_buffers=16MB", "autovacuum=off", "log_min_messages=fatal"}, s.set...) {
		args = append(args, "-c", setting)
	}
	s.process = exec.Command(filepath.Join(s.bin, "postgres"), args...)
	s.process.SysProcAttr, s.process.Dir = &syscall.SysProcAttr{Credential: s.as}, s.dir
	var log bytes.Buffer
	s.process.Stderr = &log
	if err := s.process.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.DSN(""))
		if err == nil {
			return conn.Close(ctx)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the server does not start: %w: %s", err, log.String())
		}
		time.Sleep(10 * time.Millisecond) // nothing reports it
	}
}

// account returns the user as whom the server runs. The server does not run as root: then it is the package's own
// user, who gets the directory.
func (s *Server) account() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(s.dir, uid, gid)
}

// DSN returns the server's address. schema, if not empty, is the schema of the tables.
func (s *Server) DSN(schema string) string {
	dsn := fmt.Sprintf("host=%s user=tester dbname=postgres", s.dir)
	if schema != "" {
		dsn += " search_path=" + schema
	}
	return dsn
}

// RoleDSN returns the server's address for another role.
func (s *Server) RoleDSN(role string) string {
	return fmt.Sprintf("host=%s user=%s dbname=postgres", s.dir, role)
}

// Schema makes a schema and returns the server's address with it.
func (s *Server) Schema(t testing.TB) string {
	t.Helper()
	name := roleName(s.schemas.Add(1))
	s.Exec(t, s.DSN(""), "CREATE SCHEMA "+name)
	return s.DSN(name)
}

// SchemaRole makes a schema and a role that uses it by default. An address through a pooler cannot name a schema.
func (s *Server) SchemaRole(t testing.TB) (role string) {
	t.Helper()
	role = roleName(s.schemas.Add(1))
	s.Exec(t, s.DSN(""), fmt.Sprintf(`CREATE ROLE %[1]s LOGIN; CREATE SCHEMA AUTHORIZATION %[1]s; ALTER ROLE %[1]s SET search_path = %[1]s`, role))
	return role
}

func roleName(n int64) string { return fmt.Sprintf("test%d", n) }

// Exec runs statements.
func (s *Server) Exec(t testing.TB, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// Crash ends the server at once, in the middle of whatever it does.
func (s *Server) Crash() {
	_ = s.process.Process.Signal(syscall.SIGQUIT)
	_ = s.process.Wait()
}

// Stop ends the server and removes its directory.
func (s *Server) Stop() {
	if s.process != nil {
		s.Crash()
	}
	_ = os.RemoveAll(s.dir)
}

// Own gives a directory to the user that the server runs as.
func (s *Server) Own(dir string) error {
	if s.as == nil {
		return nil
	}
	return os.Chown(dir, int(s.as.Uid), int(s.as.Gid))
}

// Guard makes a role that can connect only with its password.
func (s *Server) Guard(t testing.TB, role, password string) {
	t.Helper()
	path := filepath.Join(s.data(), "pg_hba.conf")
	rules, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append([]byte("local all "+role+" scram-sha-256\n"), rules...), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Exec(t, s.DSN(""), fmt.Sprintf(`CREATE ROLE %s LOGIN PASSWORD '%s'; SELECT pg_reload_conf()`, role, password))
	for { // until the rules are read again
		conn, err := pgx.Connect(t.Context(), s.RoleDSN(role))
		if err != nil {
			return
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
