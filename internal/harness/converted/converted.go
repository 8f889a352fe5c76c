// Package converted finds what Claude Code and Codex wrote in the user's name where other programs made lists of
// messages, or of steps, of their transcripts: the fields that say who wrote a message are lost then, and its text
// remains.
package converted

import (
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/harness/claude"
	"github.com/contextd/contextd/internal/harness/codex"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Injected labels a user message of which one of them wrote all.
func Injected(entry *transcript.Entry, blocks []eventlog.Block) {
	var about []string
	for _, b := range blocks {
		text, ok := b.(eventlog.Text)
		if !ok {
			return
		}
		standing, ok := claude.Wrote(text.Text)
		if !ok {
			standing, ok = codex.Wrote(text.Text)
		}
		if !ok {
			return
		}
		if standing != "" {
			about = append(about, standing)
		}
	}
	if len(blocks) == 0 {
		return
	}
	entry.Label(transcript.LabelInjected, "true")
	if len(about) > 0 {
		entry.Label(transcript.LabelStanding, strings.Join(slices.Compact(about), "+"))
	}
}
