package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExample runs examples/go against the program.
func TestExample(t *testing.T) {
	dir := t.TempDir()
	d := startDaemon(t, build(t), dir)
	out, err := exec.Command("go", "run", "../../examples/go", "agent", "unix://"+filepath.Join(dir, "c.sock")).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"16 tokens are too few: system prompt",
		"2 messages, 2 of them new",
		"4 messages, 2 of them new",
		"meanwhile, event 6",
		"by dialogue_window",
		"is still there: 1200 characters",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	d.stop(t)
}
