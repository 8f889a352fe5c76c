package chat

import (
	"strings"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// vibe has the members that Mistral Vibe adds to a message: whether it wrote the message itself, and what
// providers need of the reasoning.
type vibe struct {
	Injected  transcript.Maybe[bool]     `json:"injected"`
	Seal      transcript.Word            `json:"reasoning_signature"`
	Encrypted transcript.Maybe[[]string] `json:"reasoning_state"`
}

// thinking is a reasoning with its signature, or with its encrypted contents, of which there may be several.
func (v *vibe) thinking(text string) []eventlog.Thinking {
	out := []eventlog.Thinking{{Text: text, Signature: string(v.Seal)}}
	for i, data := range v.Encrypted.Value {
		if i == 0 {
			out[0].EncryptedContent = data
			continue
		}
		out = append(out, eventlog.Thinking{EncryptedContent: data})
	}
	return out
}

// vibeSummary is an element around the summary of a compaction, with which Vibe begins a file.
const vibeSummary = "<compaction_summary>"

// injectedByVibe labels a user message that Vibe wrote.
func injectedByVibe(entry *transcript.Entry, blocks []eventlog.Block) {
	entry.Label(transcript.LabelInjected, "true")
	if text, _ := first(blocks); strings.Contains(text, vibeSummary) {
		entry.Label(transcript.LabelStanding, "summary")
	}
}
