package pi

import (
	"strings"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// What pi puts around a summary where it comes before the model.
const (
	compactionHead = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n"
	compactionTail = "\n</summary>"
	branchHead     = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n"
	branchTail     = "</summary>"
)

// boundary is the text in which the summary of a compaction comes before the model.
func boundary(c *eventlog.Compaction) (b transcript.Boundary, ok bool) {
	if c.Summary == "" || !own(c) {
		return b, false
	}
	b.Blocks = []eventlog.Block{eventlog.Text{Text: compactionHead + c.Summary + compactionTail}}
	return b, true
}

// branchSummary is what was summed up in a text that branchTold made, or the text.
func branchSummary(text string) string {
	if inner, ok := strings.CutPrefix(text, branchHead); ok {
		return strings.TrimSuffix(inner, branchTail)
	}
	return text
}

func branchTold(summary string) string { return branchHead + summary + branchTail }
