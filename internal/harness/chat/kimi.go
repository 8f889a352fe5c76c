package chat

import (
	"strings"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// kimiTags are the elements that Kimi CLI writes in the user's name.
var kimiTags = transcript.Tags("system", "system-reminder", "notification", "git-context")

const (
	// kimiSummary is the text before the summary of a compaction, with which a file begins again.
	kimiSummary = "<system>Previous context has been compacted. Here is the compaction output:</system>"
	kimiError   = "<system>ERROR: "
)

// injectedByKimi labels a user message of which Kimi CLI wrote all.
func injectedByKimi(entry *transcript.Entry, blocks []eventlog.Block) {
	if text, _ := first(blocks); strings.TrimSpace(text) == kimiSummary {
		entry.Label(transcript.LabelInjected, "true")
		entry.Label(transcript.LabelStanding, "summary")
		return
	}
	for _, b := range blocks {
		text, ok := b.(eventlog.Text)
		if !ok || !transcript.Inserted(text.Text, kimiTags, kimiTags) {
			return
		}
	}
	entry.Label(transcript.LabelInjected, "true")
}
