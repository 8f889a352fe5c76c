package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestDocumentedCommands runs the sh blocks of the operator's page, in order, in
// one shell.
func TestDocumentedCommands(t *testing.T) {
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, block := range shellBlock.FindAllStringSubmatch(string(page), -1) {
		commands = append(commands, block[1])
	}
	if len(commands) < 4 {
		t.Fatalf("the page has %d sh blocks", len(commands))
	}
	script := filepath.Join(t.TempDir(), "operating.txtar")
	content := fmt.Sprintf("exec sh -eux commands.sh\nexec contextd sessions list --embedded backup\ncount 3 stdout\nexec contextd sessions list --embedded data\ncount 1 stdout\n\n-- commands.sh --\n%s", strings.Join(commands, ""))
	if err := os.WriteFile(script, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files:               []string{script},
		RequireExplicitExec: true,
		Cmds:                testCommands,
		Setup: func(env *testscript.Env) error {
			// The page's daemon listens on a port; the test's must not take it.
			env.Setenv("CONTEXTD_LISTEN", "")
			env.Setenv("CONTEXTD_UNIX_SOCKET", env.WorkDir+"/c.sock")
			return setup(env)
		},
	})
}

// TestDocumentedSettings starts with all YAML of the page.
func TestDocumentedSettings(t *testing.T) {
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	var settings strings.Builder
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		settings.WriteString(block[1])
	}
	if settings.Len() == 0 {
		t.Fatal("the page has no yaml blocks")
	}
	script := filepath.Join(t.TempDir(), "settings.txtar")
	content := "env CONTEXTD_CONFIG=contextd.yaml\nstdin event.jsonl\nexec contextd append s --embedded data\nexec contextd assemble s --policy coder --explain --embedded data\nstdout '^1 +kept'\n" +
		"-- event.jsonl --\n{\"message\":{\"role\":\"ROLE_USER\",\"blocks\":[{\"text\":{\"text\":\"Hello\"}}]}}\n-- contextd.yaml --\n" + settings.String()
	if err := os.WriteFile(script, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Files: []string{script}, RequireExplicitExec: true, Cmds: testCommands, Setup: setup})
}

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
