package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExportToAFullDisk says once why it failed.
func TestExportToAFullDisk(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip("SKIPPED: the machine has no " + full)
	}
	data := filepath.Join(t.TempDir(), "data")
	makeStore(t, data, "s", strings.Repeat("long ", 2000))
	var notes bytes.Buffer
	p := Program{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &notes, LookupEnv: func(string) (string, bool) { return "", false }}
	if code := p.Run(t.Context(), []string{"export", "s", "--format", "markdown", "-o", full, "--embedded", data}); code != ExitFailure {
		t.Errorf("exit %d", code)
	}
	if got := notes.String(); strings.Count(got, "no space left") != 1 {
		t.Errorf("it says %q", got)
	}
}
