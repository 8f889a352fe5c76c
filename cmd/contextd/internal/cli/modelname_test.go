package cli

import (
	"testing"

	"github.com/contextd/contextd/internal/budget"
)

// TestNearFamily: a name is noticed that differs by a letter from a narrower family. Other names of a wide
// family are not.
func TestNearFamily(t *testing.T) {
	models, err := budget.NewModels()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"claude-sonet-4-5":           "claude-sonnet-4*",
		"anthropic/claude-sonet-4-5": "claude-sonnet-4*",
		"Claude-Sonet-4":             "claude-sonnet-4*",
		"claude-opsu-4-5":            "",
		"claude-opu-4-5":             "claude-opus-4-5*",
		"gpt-5-mni":                  "gpt-5-mini*",
		"claude-sonnet-4-5":          "",
		"claude-sonnet-6":            "",
		"claude-opus-6":              "",
		"command-light":              "",
		"command-x":                  "",
		"gpt-5-max":                  "",
		"qwen-max":                   "",
		"grok-3":                     "",
		"gpt-4o-2024-08-06":          "",
		"nobody-knows":               "",
		"":                           "",
	} {
		if known, near := nearFamily(models, name); near != want {
			t.Errorf("%s of %s is near %q, want %q", name, known, near, want)
		}
	}
	for _, m := range models.All() {
		if _, near := nearFamily(models, m.Name); near != "" {
			t.Errorf("%s is near %q", m.Name, near)
		}
	}
}
