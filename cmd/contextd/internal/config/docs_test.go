package config_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the table of settings in docs/operating.md")

// TestDocumentedSettings compares the operator's table with the settings.
func TestDocumentedSettings(t *testing.T) {
	const path = "../../../../docs/operating.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "-rewrite -->\n", "<!-- end -->"
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the page has no marks for the table")
	}
	want := before + begin + table() + end + after
	if *rewrite {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(page) {
		t.Error("the table of settings is not what the settings are; run with -rewrite")
	}
}

// table has the settings of each topic under a heading.
func table() string {
	var b strings.Builder
	c := config.Default()
	topic := ""
	c.Settings().VisitAll(func(f *pflag.Flag) {
		if now := config.Topic(f); now != topic {
			topic = now
			fmt.Fprintf(&b, "\n### %s\n\n| key | default | meaning |\n| --- | --- | --- |\n", topic)
		}
		_, usage := pflag.UnquoteUsage(f)
		value := "`" + f.DefValue + "`"
		if f.DefValue == "" {
			value = "none"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", config.FileKey(f.Name), value, usage)
	})
	return b.String() + "\n"
}
