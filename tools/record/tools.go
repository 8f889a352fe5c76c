package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tool is a tool of the agent. run returns the output as the agent's runtime would. failed is part of the
// answer; an error is a failure outside of the agent's view.
type tool interface {
	run(ctx context.Context, p *place) (output string, failed bool, err error)
}

// bash runs a command in the repository's root.
type bash struct {
	Command string `yaml:"command" json:"command"`
}

func (b *bash) run(ctx context.Context, p *place) (string, bool, error) {
	out, err := p.command(ctx, b.Command).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.Exited():
		return fmt.Sprintf("%s[exit status %d]\n", out, exit.ExitCode()), true, nil
	case err != nil:
		return "", false, fmt.Errorf("%s: %w", b.Command, err)
	}
	return string(out), false, nil
}

// read shows a file with line numbers.
type read struct {
	Path string `yaml:"path" json:"path"`
	// Offset is the first line, from 1. Limit is the number of lines. 0 is all.
	Offset int `yaml:"offset" json:"offset,omitempty"`
	Limit  int `yaml:"limit" json:"limit,omitempty"`
}

func (r *read) run(_ context.Context, p *place) (string, bool, error) {
	text, err := os.ReadFile(p.path(r.Path))
	if err != nil {
		return fileError(r.Path, err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	first := min(max(r.Offset, 1), len(lines)+1)
	last := len(lines)
	if r.Limit > 0 {
		last = min(last, first+r.Limit-1)
	}
	var out strings.Builder
	for i, line := range lines[first-1 : last] {
		fmt.Fprintf(&out, "%5d\t%s\n", first+i, line)
	}
	return out.String(), false, nil
}

// edit replaces a text that occurs in the file exactly once.
type edit struct {
	Path    string `yaml:"path" json:"path"`
	OldText string `yaml:"old_text" json:"old_text"`
	NewText string `yaml:"new_text" json:"new_text"`
}

func (e *edit) run(_ context.Context, p *place) (string, bool, error) {
	text, err := os.ReadFile(p.path(e.Path))
	if err != nil {
		return fileError(e.Path, err)
	}
	switch n := strings.Count(string(text), e.OldText); {
	case e.OldText == "" || n == 0:
		return fmt.Sprintf("edit_file: old_text was not found in %s; the file is unchanged\n", e.Path), true, nil
	case n > 1:
		return fmt.Sprintf("edit_file: old_text stands %d times in %s; the file is unchanged\n", n, e.Path), true, nil
	}
	before, after, _ := strings.Cut(string(text), e.OldText)
	if err := os.WriteFile(p.path(e.Path), []byte(before+e.NewText+after), 0o644); err != nil {
		return "", false, err
	}
	return fmt.Sprintf("edited %s: line %d\n", e.Path, 1+strings.Count(before, "\n")), false, nil
}

// write creates or overwrites a file.
type write struct {
	Path    string `yaml:"path" json:"path"`
	Content string `yaml:"content" json:"content"`
}

func (w *write) run(_ context.Context, p *place) (string, bool, error) {
	name := p.path(w.Path)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return "", false, err
	}
	if err := os.WriteFile(name, []byte(w.Content), 0o644); err != nil {
		return "", false, err
	}
	return fmt.Sprintf("wrote %s: %d lines\n", w.Path, strings.Count(w.Content, "\n")), false, nil
}

// fileError converts an error of the operating system about a file into the tool's output.
func fileError(name string, err error) (string, bool, error) {
	var pathError *os.PathError
	if !errors.As(err, &pathError) {
		return "", false, err
	}
	return fmt.Sprintf("%s: %v\n", name, pathError.Err), true, nil
}
