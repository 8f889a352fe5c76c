package harness_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/harness/transcript"
)

func TestNames(t *testing.T) {
	want := []string{"claude", "codex", "opencode2", "opencode", "pi", "gemini", "qwen", "kimi", "antigravity", "dsh", "copilot", "openhands", "aider", "cursor", "vscode", "atif", "chat"}
	if got := harness.Names(); !slices.Equal(got, want) {
		t.Errorf("Names() = %q, want %q", got, want)
	}
}

// TestRegistry: every entry has what a reader needs, names that no other has, fixtures, and a page and a row
// in docs/harness that agree with it.
func TestRegistry(t *testing.T) {
	index := page(t, "README")
	names := map[string]string{}
	for _, h := range harness.All() {
		if h.Detect == nil || h.Read == nil {
			t.Errorf("%s has no Detect or no Read", h.Name)
		}
		for _, name := range append([]string{h.Name}, h.Aliases...) {
			if of, taken := names[name]; taken || name == "" {
				t.Errorf("%q names %s and %s", name, of, h.Name)
			}
			names[name] = h.Name
		}
		if fixtures, err := filepath.Glob(h.Name + "/testdata/*.in.*"); err != nil || len(fixtures) == 0 {
			t.Errorf("%s has no fixtures: %v", h.Name, err)
		}
		written, notKept := "no", "page"
		if h.Write != nil {
			written = "yes"
		}
		if h.NotKept != nil {
			notKept = "table"
		}
		checkRow(t, index, fmt.Sprintf("| [%s](%[1]s.md) | %s |", h.Name, strings.Join(h.Aliases, ", ")),
			fmt.Sprintf("| yes | %s |", written), fmt.Sprintf("| [%s](%s.md#not-kept) |", notKept, h.Name))
		checkNotKept(t, h)
	}
	checkFolders(t)
}

// TestKimiCLI: the name of Kimi CLI reads what Kimi CLI writes, which is not what Kimi Code writes.
func TestKimiCLI(t *testing.T) {
	file := `{"role":"_system_prompt","content":"You code."}
{"role":"user","content":"Why does make fail?"}
{"role":"_checkpoint","id":0}
{"role":"assistant","content":[{"type":"think","think":"Perhaps a typo."},{"type":"text","text":"I look."}]}
`
	tr, err := harness.Read(strings.NewReader(file), "kimi-cli")
	if err != nil || len(tr.Sessions) != 1 || len(tr.Sessions[0].Events) < 3 {
		t.Errorf("read as kimi-cli: %+v, %v", tr, err)
	}
}

// checkRow looks for a line of the page with the given beginning, middle and end.
func checkRow(t *testing.T, page, begin, middle, end string) {
	t.Helper()
	begin = strings.ReplaceAll(begin, "|  |", "| |")
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, begin) && strings.Contains(line, middle) && strings.HasSuffix(line, end) {
			return
		}
	}
	t.Errorf("docs/harness/README.md has no row %s … %s … %s", begin, middle, end)
}

// checkNotKept: the page prints the table of what is not kept, row by row, and nothing else
// under that heading.
func checkNotKept(t *testing.T, h transcript.Harness) {
	t.Helper()
	_, got, ok := strings.Cut(page(t, h.Name), "## Not kept\n\n")
	if h.NotKept == nil {
		if !ok {
			t.Errorf("the page of %s does not say what is not kept", h.Name)
		}
		return
	}
	want := "| entry | field | why |\n| --- | --- | --- |\n"
	for _, row := range h.NotKept {
		field := "`" + row.Field + "`"
		if row.Field == "" {
			field = "the whole"
		}
		want += "| `" + row.Entry + "` | " + field + " | " + row.Reason + " |\n"
	}
	if got != want {
		t.Errorf("the page of %s should end with\n%s\nand ends with\n%s", h.Name, want, got)
	}
}

// checkFolders: every folder with testdata has an entry in the registry.
func checkFolders(t *testing.T) {
	t.Helper()
	folders, err := filepath.Glob("*/testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if name := filepath.Dir(folder); !slices.Contains(harness.Names(), name) {
			t.Errorf("%s is not in the registry", name)
		}
	}
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/harness/" + name + ".md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
