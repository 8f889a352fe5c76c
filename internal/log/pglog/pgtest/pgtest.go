// Package pgtest starts a PostgreSQL server for tests, in a temporary directory and on a unix socket
// alone.
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
	dir     string
	process *exec.Cmd
	schemas atomic.Int64
}

// binaries is the directory with the newest server that is installed; empty if none is.
func binaries() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // where Debian has them
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(slices.Max(found))
}

// Start returns nil where no PostgreSQL is installed.
func Start() (*Server, error) {
	bin := binaries()
	if bin == "" {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir}
	as, err := s.account()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.SysProcAttr, initdb.Dir = &syscall.SysProcAttr{Credential: as}, dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	s.process = exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=",
		"-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "autovacuum=off", "-c", "log_min_messages=fatal")
	s.process.SysProcAttr, s.process.Dir = &syscall.SysProcAttr{Credential: as}, dir
	var log bytes.Buffer
	s.process.Stderr = &log
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.DSN(""))
		if err == nil {
			return s, conn.Close(ctx)
		}
		if ctx.Err() != nil {
			s.Stop()
			return nil, fmt.Errorf("the server does not start: %w: %s", err, log.String())
		}
	}
}

// account is whom the server runs as: root may not, so there it is the package's own user, to whom
// the directory is given.
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

// DSN is the server's address; schema, if not empty, is where tables are looked for and made.
func (s *Server) DSN(schema string) string {
	dsn := fmt.Sprintf("host=%s user=tester dbname=postgres", s.dir)
	if schema != "" {
		dsn += " search_path=" + schema
	}
	return dsn
}

// Schema makes a schema and returns the server's address with it.
func (s *Server) Schema(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test%d", s.schemas.Add(1))
	s.Exec(t, s.DSN(""), "CREATE SCHEMA "+name)
	return s.DSN(name)
}

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

// Stop ends the server at once and removes its directory.
func (s *Server) Stop() {
	_ = s.process.Process.Signal(syscall.SIGQUIT)
	_ = s.process.Wait()
	_ = os.RemoveAll(s.dir)
}
