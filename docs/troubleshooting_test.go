package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// messages are the headings of the troubleshooting page that quote what contextd itself says.
var messages = regexp.MustCompile("(?m)^### `(.*)`$")

// TestTroubleshootingQuotesTheProgram holds the messages of the page to the sources: what is
// between the dots must be there as it is quoted.
func TestTroubleshootingQuotesTheProgram(t *testing.T) {
	page, err := os.ReadFile("troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	ours, _, ok := strings.Cut(string(page), "\n## The provider refuses")
	if !ok {
		t.Fatal("the page has no section about the provider")
	}
	found := messages.FindAllStringSubmatch(ours, -1)
	if len(found) < 10 {
		t.Fatalf("only %d messages", len(found))
	}
	said := sources(t)
	for _, m := range found {
		for part := range strings.SplitSeq(m[1], "…") {
			if part = strings.TrimSpace(part); !strings.Contains(said, part) {
				t.Errorf("%q: no source says %q", m[1], part)
			}
		}
	}
}

// notOurs are messages of libraries and the system.
var notOurs = "bind: address already in use\nreceived message larger than max\n"

func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	all.WriteString(notOurs)
	for _, root := range []string{"../cmd", "../internal", "../client", "../clients/python/src"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			source := strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".py")
			if err != nil || d.IsDir() || !source {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
