package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

const evaluatingPage = "../../docs/evaluating.md"

// TestDocumentedEvaluation runs the commands of the page on evaluating, and compares their output with the
// page's. With -rewrite it updates the page.
func TestDocumentedEvaluation(t *testing.T) {
	content, err := os.ReadFile(evaluatingPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(content)
	before, rest, opened := strings.Cut(page, "```text\n")
	want, after, closed := strings.Cut(rest, "```\n")
	if !opened || !closed {
		t.Fatal("the page shows no output")
	}
	session, err := os.ReadFile("internal/demo/session.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files: script(t, "exec sh -eu commands.sh\nshown\n-- commands.sh --\n"+blocks(t, "evaluating.md", "sh")), RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			return firstOf(setup(env), os.WriteFile(filepath.Join(env.WorkDir, "session.jsonl"), session, 0o600))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"shown": func(ts *testscript.TestScript, _ bool, _ []string) {
				got := ts.ReadFile("stdout")
				if *rewrite {
					ts.Check(os.WriteFile(evaluatingPage, []byte(before+"```text\n"+got+"```\n"+after), 0o644))
				} else if got != want {
					t.Errorf("the page shows something else; -rewrite makes it this:\n%s", got)
				}
			},
		},
	})
}
