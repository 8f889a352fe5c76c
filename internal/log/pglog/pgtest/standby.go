package pgtest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// synchronous returns the settings with which a server acknowledges only commits that a standby has.
func synchronous() []string {
	return []string{"synchronous_standby_names=*", "wal_keep_size=256MB", "wal_retrieve_retry_interval=50ms", "hot_standby=on"}
}

// Pair starts a primary whose commits wait for a standby, and the standby; nil if no PostgreSQL is installed. They
// stop when the test ends.
func Pair(t testing.TB, settings ...string) (primary, standby *Server) {
	t.Helper()
	primary, err := Start(slices.Concat(synchronous(), settings)...)
	if err != nil {
		t.Fatal(err)
	}
	if primary == nil {
		return nil, nil
	}
	t.Cleanup(func() { primary.Stop() })
	if standby, err = newServer(primary.set...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { standby.Stop() })
	if err := standby.Follow(primary); err != nil {
		t.Fatal(err)
	}
	return primary, standby
}

// Follow makes a server, which must not run, a standby of another one from a copy of that, and starts it.
func (s *Server) Follow(primary *Server) error {
	if err := os.RemoveAll(s.data()); err != nil {
		return err
	}
	err := s.tool("pg_basebackup", "--dbname="+primary.DSN(""), "--pgdata="+s.data(),
		"--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--no-manifest")
	if err != nil {
		return err
	}
	return s.Launch()
}

// Promote makes a standby a primary.
func (s *Server) Promote() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DSN(""))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var promoted bool
	if err := conn.QueryRow(ctx, `SELECT pg_promote(true, 60)`).Scan(&promoted); err != nil || !promoted {
		return fmt.Errorf("promote: %t, %w", promoted, err)
	}
	return nil
}

// Kill ends all processes of the server at once with signal 9, as a failure of its machine would.
func (s *Server) Kill() {
	pid := s.process.Process.Pid
	_ = syscall.Kill(pid, syscall.SIGSTOP) // it starts no more
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	_ = syscall.Kill(pid, syscall.SIGKILL)
	for _, child := range strings.Fields(string(children)) {
		if n, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
	_ = s.process.Wait()
	for _, child := range strings.Fields(string(children)) {
		for { // one that still runs would keep the memory, which a start on the same data refuses
			if _, err := os.Readlink("/proc/" + child + "/exe"); err != nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// AnyDSN returns the address of whichever of the servers is the primary.
func AnyDSN(servers ...*Server) string {
	hosts := make([]string, len(servers))
	for i, s := range servers {
		hosts[i] = s.dir
	}
	return fmt.Sprintf("host=%s user=tester dbname=postgres target_session_attrs=read-write", strings.Join(hosts, ","))
}

// Await waits until a query yields true.
func (s *Server) Await(t testing.TB, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for is := false; !is; {
		if err := conn.QueryRow(t.Context(), sql).Scan(&is); err != nil {
			t.Fatal(err)
		}
	}
}
