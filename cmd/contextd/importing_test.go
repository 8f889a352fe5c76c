package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
)

// importChecks check the results of the page's commands.
const importChecks = `
exec contextd sessions list --embedded data
stdout '^app/fix '
stdout '^app/fix/sidechain-1 '
exec contextd sessions get app/fix/sidechain-1 --embedded data
stdout '^forked from +app/fix, of which it shares no event$'
exec contextd sessions list --embedded data
stdout '^rollout '
stdout '^live '
stdout '^my-session '
stdout '^team/rollout '
grep '^live: [0-9]+ events appended' follow.log
exec contextd import short.jsonl --embedded back
stdout '^short: .* 1 compaction'
exec contextd import again.jsonl pi.jsonl rollout.jsonl resumed.jsonl --embedded back
stdout '^4 transcripts imported'
`

// TestDocumentedImports runs the sh blocks of the page on importing, in order, in one
// shell.
func TestDocumentedImports(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Files: script(t, "exec sh -eux commands.sh\n"+importChecks+"\n-- commands.sh --\n"+blocks(t, "importing.md", "sh")), RequireExplicitExec: true, Cmds: testCommands,
		Setup: func(env *testscript.Env) error {
			return firstOf(setup(env), projects(filepath.Join(env.WorkDir, "projects")))
		},
	})
}

func firstOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// projects creates a folder with transcripts and other files.
func projects(dir string) error {
	var long bytes.Buffer
	if _, err := harness.Write(&long, longTranscript(60), "claude", harness.WriteOptions{}); err != nil {
		return err
	}
	files := map[string][]byte{"long.jsonl": long.Bytes(), "notes.md": []byte("# Notes\n")}
	for name, fixture := range map[string]string{
		"app/fix.jsonl": "claude/testdata/session.in.jsonl", "app/live.jsonl": "pi/testdata/v3.in.jsonl",
		"rollout.jsonl": "codex/testdata/rollout.in.jsonl",
	} {
		data, err := os.ReadFile("../../internal/harness/" + fixture)
		if err != nil {
			return err
		}
		files[name] = data
	}
	if err := os.MkdirAll(filepath.Join(dir, "app"), 0o700); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// longTranscript is a transcript of so many tool steps.
func longTranscript(steps int) harness.Transcript {
	var events []eventlog.Event
	add := func(role eventlog.Role, blocks ...eventlog.Block) {
		n := len(events) + 1
		events = append(events, eventlog.Event{
			ID: fmt.Sprintf("%08x-0000-4000-8000-000000000000", n), Time: time.Date(2026, 5, 1, 8, 0, n, 0, time.UTC),
			Body: &eventlog.Message{Role: role, Blocks: blocks},
		})
	}
	add(eventlog.RoleUser, eventlog.Text{Text: "Read everything."})
	for i := range steps {
		call := fmt.Sprintf("call_%d", i)
		add(eventlog.RoleAssistant, eventlog.ToolCall{CallID: call, Name: "Read", Arguments: fmt.Sprintf(`{"path":"src/f%d.go"}`, i)})
		text := strings.Repeat(fmt.Sprintf("line of file %d with some words in it\n", i), 40)
		add(eventlog.RoleTool, eventlog.ToolResult{CallID: call, ToolName: "Read", Content: []eventlog.Block{eventlog.Text{Text: text}}})
	}
	add(eventlog.RoleAssistant, eventlog.Text{Text: "I have read everything."})
	return harness.Transcript{Sessions: []harness.Session{{Events: events, Labels: map[string]string{}}}}
}
