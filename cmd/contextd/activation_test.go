package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSocketActivation: a service manager opens the socket, starts the program with it, and keeps it open
// afterwards.
func TestSocketActivation(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "c.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(socket, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, log := activated(t, l, "--listen", "127.0.0.1:1"), &lines{}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(build(t), "health", "--wait", "30s", "--addr", "unix://"+socket).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log)
	}
	if strings.Contains(log.String(), "127.0.0.1") {
		t.Errorf("the daemon listens on its own address as well:\n%s", log)
	}
	if _, err := os.Stat(socket); err != nil {
		t.Errorf("the socket is the service manager's: %v", err)
	}
}

// TestSocketActivationRefused: a socket that others can reach is refused without authentication, even if a
// service manager opened it.
func TestSocketActivationRefused(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "c.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(socket, 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := activated(t, l).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "unix_socket_mode 0666 lets every user") {
		t.Errorf("%v: %s", err, out)
	}
}

// activated is the program as a service manager starts it with a socket.
func activated(t *testing.T, l *net.UnixListener, flags ...string) *exec.Cmd {
	t.Helper()
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" serve --store=memory "$@"`, build(t)}, flags...)...)
	cmd.ExtraFiles = []*os.File{f}
	return cmd
}
