package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/budget/bpe"
)

// TestLoadSkips: an unreadable file is reported, and the others are replayed all the same.
func TestLoadSkips(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.empty.jsonl": `{"type":"summary","leafUuid":"u","summary":"Nothing was said"}`,
		"b.cut.json.gz": "\x1f\x8b",
		"c.vscdb":       "SQLite format 3\x00 CREATE TABLE cursorDiskKV (key TEXT, value BLOB)",
		"d.crush.db":    "SQLite format 3\x00 CREATE TABLE messages (id TEXT)",
		"e.json":        `[{"role":"user","content":"hi"},{"role":"assistant","content":"ho"}]`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	encoding, err := bpe.Open(budget.TokenizerO200K)
	if err != nil {
		t.Fatal(err)
	}
	var notes strings.Builder
	files, sessions, err := load(settings{corpus: dir, every: 1}, budget.NewGauge(encoding), &notes)
	if err != nil || len(files) != 1 || len(sessions) != 1 || filepath.Base(files[0].path) != "e.json" {
		t.Fatalf("%d files, %d sessions: %v", len(files), len(sessions), err)
	}
	for _, name := range []string{"a.empty.jsonl", "b.cut.json.gz", "c.vscdb"} {
		if !strings.Contains(notes.String(), "skipped: "+filepath.Join(dir, name)+": ") {
			t.Errorf("%s is not named in\n%s", name, &notes)
		}
	}
	if n := strings.Count(notes.String(), "\n"); n != 3 {
		t.Errorf("%d lines instead of 3:\n%s", n, &notes)
	}
}
