package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// whole is a policy that drops nothing of the harness's own view. roomy is a budget that everything fits.
const (
	whole = `{"tool_results":{"default":{"never_evict":true}},"duplicates":{},"clipping":{},"thinking":{},` +
		`"window":{},"summarization":{},"projection":{"policy":"harness_view"}}`
	roomy = "100000000"
)

const contextdTimeout = 5 * time.Minute

// Contextd is the program under test.
type Contextd struct{ binary string }

// buildContextd builds the program in the cache directory.
func buildContextd(ctx context.Context, cache string) (Contextd, error) {
	c := Contextd{binary: filepath.Join(cache, "contextd")}
	ctx, cancel := context.WithTimeout(ctx, contextdTimeout)
	defer cancel()
	out, err := runGroup(exec.CommandContext(ctx, "go", "build", "-o", c.binary, "./cmd/contextd"))
	if err != nil {
		return c, fmt.Errorf("build contextd: %w\n%s", err, tail(out))
	}
	return c, nil
}

// Convert writes a transcript for a harness, as `contextd convert` does.
func (c Contextd) Convert(ctx context.Context, file []byte, to string, flags ...string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "resumecheck-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, file, 0o600); err != nil {
		return nil, err
	}
	if _, err := c.run(ctx, append([]string{"convert", in, out, "--to", to}, flags...)...); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

// View is what the model would see of a transcript, according to contextd.
func (c Contextd) View(ctx context.Context, file []byte, harness string) ([]Turn, error) {
	dir, err := os.MkdirTemp("", "resumecheck-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	in, db := filepath.Join(dir, "in"), filepath.Join(dir, "db")
	if err := os.WriteFile(in, file, 0o600); err != nil {
		return nil, err
	}
	if _, err := c.run(ctx, "import", in, "--session", "s", "--harness", harness, "--embedded", db); err != nil {
		return nil, err
	}
	out, err := c.run(ctx, "assemble", "s", "--preview", "--embedded", db, "--max-tokens", roomy, "--policy", whole)
	if err != nil {
		return nil, err
	}
	return viewTurns(out)
}

// run returns the program's standard output.
func (c Contextd) run(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, contextdTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.binary, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("contextd %s: %w\n%s", strings.Join(args, " "), err, tail(errs.Bytes()))
	}
	return out, nil
}
