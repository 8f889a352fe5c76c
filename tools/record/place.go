package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// place is the copy of a repository in which the session is recorded.
type place struct {
	root     string // a temporary directory
	env      []string
	cleaners []cleaner
}

// checkOut copies a revision into a temporary directory, and makes it a repository with one commit there. The
// source repository is only read.
func checkOut(ctx context.Context, repository, revision string) (_ *place, err error) {
	root, err := os.MkdirTemp("", "record-")
	if err != nil {
		return nil, err
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, err
	}
	p := &place{root: root}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.remove())
		}
	}()
	for _, dir := range []string{p.path("."), p.home()} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
	}
	if err := p.environment(ctx); err != nil {
		return nil, err
	}
	if err := extract(ctx, repository, revision, p.path(".")); err != nil {
		return nil, err
	}
	for _, command := range []string{"git init -q -b main", "git add -A", "git commit -q -m base"} {
		if out, err := p.command(ctx, command).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", command, err, out)
		}
	}
	return p, nil
}

// path is the path of a file of the repository.
func (p *place) path(name string) string { return filepath.Join(p.root, "repo", name) }

func (p *place) home() string { return filepath.Join(p.root, "home") }

// remove deletes the copy.
func (p *place) remove() error { return os.RemoveAll(p.root) }

// command runs a shell command in the copy's root. Its environment has nothing of the user's but Go's build
// cache and modules, and it cannot download modules.
func (p *place) command(ctx context.Context, command string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir = p.path(".")
	cmd.Env = p.env
	return cmd
}

// environment sets the environment for commands, with Go's directories, and cleaners that hide these.
func (p *place) environment(ctx context.Context) error {
	names := []string{"GOROOT", "GOCACHE", "GOMODCACHE"}
	out, err := exec.CommandContext(ctx, "go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	values := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(values) != len(names) {
		return fmt.Errorf("go env: got %q for %q", values, names)
	}
	p.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.home(), "PWD=" + p.path("."),
		"LC_ALL=C.UTF-8", "TZ=UTC", "TERM=dumb", "COLUMNS=100",
		"GOCACHE=" + values[1], "GOMODCACHE=" + values[2],
		"GOFLAGS=-trimpath", "GOPROXY=off", "GOTOOLCHAIN=local", "GOTELEMETRY=off",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_PAGER=cat",
		"GIT_AUTHOR_NAME=dev", "GIT_AUTHOR_EMAIL=dev@example.com", "GIT_AUTHOR_DATE=2026-01-05T09:00:00Z",
		"GIT_COMMITTER_NAME=dev", "GIT_COMMITTER_EMAIL=dev@example.com", "GIT_COMMITTER_DATE=2026-01-05T09:00:00Z",
	}
	p.cleaners = newCleaners(map[string]string{
		p.path("."): "/repo", p.home(): "/home/dev",
		values[0]: "/usr/local/go", values[1]: "/home/dev/.cache/go-build", values[2]: "/home/dev/go/pkg/mod",
	})
	return nil
}

// extract unpacks a revision of a repository.
func extract(ctx context.Context, repository, revision, dir string) error {
	archive := exec.CommandContext(ctx, "git", "-C", repository, "archive", "--format=tar", revision)
	archive.Stderr = os.Stderr
	out, err := archive.StdoutPipe()
	if err != nil {
		return err
	}
	if err := archive.Start(); err != nil {
		return err
	}
	unpacked := unpack(tar.NewReader(out), dir)
	// If output remained unread, git archive would block.
	_, drained := io.Copy(io.Discard, out)
	if err := archive.Wait(); err != nil {
		return fmt.Errorf("git archive %s: %w", revision, err)
	}
	return errors.Join(unpacked, drained)
}

func unpack(in *tar.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch header.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(filepath.Clean(header.Name), 0o755)
		case tar.TypeReg:
			err = unpackFile(in, root, header)
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", header.Name, err)
		}
	}
}

func unpackFile(in io.Reader, root *os.Root, header *tar.Header) error {
	f, err := root.OpenFile(header.Name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, header.FileInfo().Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	return errors.Join(err, f.Close())
}
