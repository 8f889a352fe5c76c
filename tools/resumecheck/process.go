package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const resumeTimeout = 2 * time.Minute

// runCLI runs a command in a home. Of this process's environment it only gets PATH. All hosts but loopback
// are set to go through a proxy, which refuses them.
func runCLI(ctx context.Context, h Home, c Command) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, resumeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir = h.Work
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + h.Dir, "TMPDIR=" + h.Dir, "TERM=dumb", "LANG=C.UTF-8",
		"HTTP_PROXY=" + h.URL, "HTTPS_PROXY=" + h.URL, "ALL_PROXY=" + h.URL,
		"http_proxy=" + h.URL, "https_proxy=" + h.URL, "all_proxy=" + h.URL,
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost",
	}, c.Env...)
	out, err := runGroup(cmd)
	if ctx.Err() != nil {
		err = fmt.Errorf("not done in time: %w", context.Cause(ctx))
	}
	return out, err
}

// runGroup runs a command as a process group of its own, and returns its output. It ends the whole group when
// the context of the command ends, and in any case before it returns.
func runGroup(cmd *exec.Cmd) (written []byte, err error) {
	// A file instead of a pipe, since remaining child processes would keep a pipe open.
	out, err := os.CreateTemp("", "resumecheck-output-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, out.Close(), os.Remove(out.Name())) }()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	end := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = end
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	err = cmd.Wait()
	if left := end(); left != nil && !errors.Is(left, syscall.ESRCH) {
		err = errors.Join(err, left)
	}
	written, unread := os.ReadFile(out.Name())
	return written, errors.Join(err, unread)
}

// tail is the end of a program's output.
func tail(out []byte) []byte {
	const most = 2000
	out = bytes.TrimSpace(out)
	return out[max(0, len(out)-most):]
}
