package demo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/contextd/contextd/cmd/contextd/internal/demo"
)

const readme = "../../../../README.md"

func readReadme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// shown compares the text block after a sentence of the README with want, or with -rewrite replaces it.
func shown(t *testing.T, sentence, want string) {
	t.Helper()
	page := readReadme(t)
	at := strings.Index(page, sentence)
	if at < 0 {
		t.Fatalf("README.md does not say %q", sentence)
	}
	before, rest, opened := strings.Cut(page[at:], "```text\n")
	got, after, closed := strings.Cut(rest, "```\n")
	if !opened || !closed {
		t.Fatalf("no text block after %q", sentence)
	}
	if *demo.Rewrite {
		page = page[:at] + before + "```text\n" + want + "```\n" + after
		if err := os.WriteFile(readme, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("README.md shows something else; -rewrite makes it this:\n%s", want)
	}
}

func TestReadmeShowsTheDemo(t *testing.T) {
	shown(t, "recorded over this repository:", excerpt(runDemo(t)))
}

// excerpt omits the turns at which nothing happens.
func excerpt(picture string) string {
	head, rest, _ := strings.Cut(picture, "prefix\n")
	body, end, _ := strings.Cut(rest, "\n\n")
	lines := strings.Split(body, "\n")
	happens := regexp.MustCompile(`user: | -\d+\.\d[kM]: `)
	var out strings.Builder
	skipped := false
	for i, line := range lines {
		first := i < 3
		last := i == len(lines)-1
		if !first && !last && !happens.MatchString(line) && !happens.MatchString(lines[i+1]) {
			skipped = true
			continue
		}
		if skipped {
			fmt.Fprintln(&out, " ...")
		}
		skipped = false
		fmt.Fprintln(&out, line)
	}
	return head + "prefix\n" + out.String() + "\n" + end
}

// TestReadmeQuickStart runs the commands of the README as written, and compares their output with the
// README's.
func TestReadmeQuickStart(t *testing.T) {
	_, section, _ := strings.Cut(readReadme(t), "## Quick start")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(blocks) != 4 {
		t.Fatalf("the quick start has %d sh blocks", len(blocks))
	}
	script := filepath.Join(t.TempDir(), "quickstart.txtar")
	commands := fmt.Sprintf("%s%s{\n%s} > shown\n%s", blocks[0][1], blocks[1][1], blocks[2][1], blocks[3][1])
	content := "exec sh -eu commands.sh\nstdout '^4 events appended, 1 to 4$'\nshown\n-- commands.sh --\n" + commands
	if err := os.WriteFile(script, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files:               []string{script},
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			// The page's daemon listens on a port; tests must not occupy it.
			env.Setenv("CONTEXTD_LISTEN", "")
			env.Setenv("CONTEXTD_UNIX_SOCKET", env.WorkDir+"/c.sock")
			env.Setenv("CONTEXTD_ADDR", "unix://"+env.WorkDir+"/c.sock")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"shown": func(ts *testscript.TestScript, _ bool, _ []string) {
				shown(t, "contextd assemble my-session --max-tokens 16k --explain", ts.ReadFile("shown"))
				quoted := regexp.MustCompile("(?s)```jsonl\n(.*?)```").FindStringSubmatch(formatPage(t))
				if len(quoted) == 0 || ts.ReadFile("context.jsonl") != quoted[1] {
					t.Errorf("the example of docs/format.md is not the context of the quick start:\n%s", ts.ReadFile("context.jsonl"))
				}
			},
		},
	})
}

func formatPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
