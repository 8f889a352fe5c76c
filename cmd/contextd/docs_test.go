package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// pages are pages whose sh blocks are run in order in one shell, with the script before them and the checks
// after them.
var pages = map[string]struct{ before, after string }{
	"operating.md": {after: "exec contextd log greeting --embedded data\ncount 2 stdout\n"},
	"storage.md": {
		before: "stdin event.jsonl\nexec contextd append greeting --embedded data\n" +
			"exec contextd assemble greeting --max-tokens 32k --embedded data\n",
		after: "exec contextd sessions list --embedded restored\ncount 3 stdout\nexec contextd sessions list --embedded data\ncount 1 stdout\n",
	},
	"runbook.md": {
		before: "env SESSION=s\nenv DIR=stopped\nstdin event.jsonl\nexec contextd append s --embedded stopped\n" +
			"exec contextd serve --data-dir data &\nexec contextd health --wait 60s\nstdin event.jsonl\nexec contextd append s\n",
		after: "exec contextd sessions list\ncount 2 stdout\n",
	},
	"cli.md":      {after: "exec contextd log copy --embedded data\ncount 2 stdout\nexists contextd.bash\n"},
	"security.md": {after: "exists ci.token tokens.yaml\n"},
}

const event = "\n-- event.jsonl --\n" + `{"message":{"role":"ROLE_USER","blocks":[{"text":{"text":"Hello"}}]}}` + "\n"

// blocks are the code blocks of a language in a page.
func blocks(t *testing.T, page, language string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, block := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		all.WriteString(block[1])
	}
	if all.Len() == 0 {
		t.Fatalf("%s has no %s blocks", page, language)
	}
	return all.String()
}

func script(t *testing.T, content string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.txtar")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{path}
}

func TestDocumentedCommands(t *testing.T) {
	for page, around := range pages {
		t.Run(page, func(t *testing.T) {
			testscript.Run(t, testscript.Params{
				Files:               script(t, around.before+"exec sh -eux commands.sh\n"+around.after+event+"-- commands.sh --\n"+blocks(t, page, "sh")),
				RequireExplicitExec: true,
				Cmds:                testCommands,
				Setup: func(env *testscript.Env) error {
					// The page's daemon listens on a port; tests must not occupy it.
					env.Setenv("CONTEXTD_LISTEN", "")
					env.Setenv("CONTEXTD_UNIX_SOCKET", env.WorkDir+"/c.sock")
					return setup(env)
				},
			})
		})
	}
}

// TestDocumentedSettings starts the program with all YAML blocks of each page.
func TestDocumentedSettings(t *testing.T) {
	for page, policy := range map[string]string{"operating.md": "coder", "security.md": "default"} {
		t.Run(page, func(t *testing.T) {
			testscript.Run(t, testscript.Params{
				Files: script(t, "env CONTEXTD_CONFIG=contextd.yaml\nstdin event.jsonl\nexec contextd append s --embedded data\nexec contextd assemble s --policy "+policy+
					" --explain --embedded data\nstdout '^1 +kept'\n"+event+"-- contextd.yaml --\n"+
					blocks(t, page, "yaml")),
				RequireExplicitExec: true, Cmds: testCommands, Setup: setup,
			})
		})
	}
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
		"is still there: 3640 characters",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	d.stop(t)
}

// TestArchitectureNamesEveryPackage compares the list of packages in ARCHITECTURE.md with the folders.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	page, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, parent := range []string{"internal", "../../internal"} {
		folders, err := os.ReadDir(parent)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range folders {
			if f.IsDir() && !regexp.MustCompile(`(?m)^ +internal/`+regexp.QuoteMeta(f.Name())+` `).Match(page) {
				t.Errorf("ARCHITECTURE.md does not list %s/%s", parent, f.Name())
			}
		}
	}
}
