//go:build unix

package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A pipe that has a name says nothing until somebody writes to it. A command that waits for that
// ends when it is interrupted.
func TestInterruptedWhileAPipeSaysNothing(t *testing.T) {
	dir := t.TempDir()
	for name, command := range map[string]string{
		"nothing import":        "import PIPE --session s --embedded DATA",
		"nothing convert":       "convert PIPE OUT --to codex",
		"nothing eval":          "eval PIPE",
		"nothing summary":       "compact s --summary-file PIPE --embedded DATA",
		"an open pipe, import":  "import PIPE --session s --embedded DATA",
		"an open pipe, summary": "compact s --summary-file PIPE --embedded DATA",
	} {
		t.Run(name, func(t *testing.T) {
			pipe := filepath.Join(t.TempDir(), "pipe.jsonl")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(name, "an open") {
				both, err := os.OpenFile(pipe, os.O_RDWR, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer both.Close()
			}
			ctx, interrupt := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer interrupt()
			var diagnostics strings.Builder
			p := Program{
				Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &diagnostics,
				LookupEnv: func(string) (string, bool) { return "", false },
			}
			args := strings.Fields(strings.NewReplacer("PIPE", pipe, "OUT", filepath.Join(dir, "out.jsonl"), "DATA", filepath.Join(dir, "data")).Replace(command))
			ended := make(chan int, 1)
			go func() { ended <- p.Run(ctx, args) }()
			select {
			case code := <-ended:
				if code == ExitOK {
					t.Errorf("it ended well: %s", &diagnostics)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it did not end")
			}
		})
	}
}

// A pipe that is written to is read as a file is.
func TestPipeIsImported(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.jsonl")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := os.WriteFile(pipe, []byte(`{"role":"user","content":"hello"}`+"\n"), 0o600); err != nil {
			t.Error(err)
		}
	}()
	var out, diagnostics strings.Builder
	p := Program{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &diagnostics, LookupEnv: func(string) (string, bool) { return "", false }}
	if code := p.Run(t.Context(), []string{"import", pipe, "--session", "s", "--embedded", filepath.Join(dir, "data")}); code != ExitOK || !strings.Contains(out.String(), "1 event") {
		t.Errorf("exit code %d: %s%s", code, &out, &diagnostics)
	}
}

// What is followed is read again and again, which a pipe is not.
func TestPipeIsNotFollowed(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe.jsonl")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var diagnostics strings.Builder
	p := Program{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &diagnostics, LookupEnv: func(string) (string, bool) { return "", false }}
	if code := p.Run(t.Context(), []string{"import", "--follow", pipe, "--embedded", filepath.Join(t.TempDir(), "data")}); code != ExitUsage || !strings.Contains(diagnostics.String(), "a device or a pipe") {
		t.Errorf("exit code %d: %s", code, &diagnostics)
	}
}
