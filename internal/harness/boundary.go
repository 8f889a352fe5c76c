package harness

import (
	"encoding/json"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/pi"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Boundary is how a harness goes on behind a compaction.
type Boundary struct {
	// Blocks are what stands for all that left; empty if the log does not hold it.
	Blocks []eventlog.Block
	// Last is set where they stand behind what was kept, rather than before it.
	Last bool
}

// BoundaryOf tells how the harness that wrote a compaction goes on behind it: what the
// model reads is Blocks, the events that were kept, and what came since.
func BoundaryOf(c *eventlog.Compaction) Boundary {
	var native struct {
		Type    string `json:"type"`
		Payload struct {
			History []json.RawMessage `json:"replacement_history"`
		} `json:"payload"`
	}
	if c.NativeJSON != "" && json.Unmarshal([]byte(c.NativeJSON), &native) != nil {
		native.Type = "" // a marker of some other shape
	}
	if native.Type == "compacted" {
		return codexBoundary(c, native.Payload.History)
	}
	if c.Summary == "" {
		return Boundary{}
	}
	if text, ok := pi.Told(c); ok {
		return Boundary{Blocks: []eventlog.Block{eventlog.Text{Text: text}}}
	}
	return Boundary{Blocks: []eventlog.Block{eventlog.Text{Text: c.Summary}}}
}

// codexBoundary finds what stands for what left in the list that replaced the prompt: the
// summary as a text, or items that only the provider can read. Where there is such a list
// Codex reads that alone; where there is none, it puts the summary behind what it kept.
func codexBoundary(c *eventlog.Compaction, history []json.RawMessage) Boundary {
	b := Boundary{Last: true}
	for _, item := range history {
		var it struct {
			Type    string `json:"type"`
			Role    string `json:"role"`
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		}
		if json.Unmarshal(item, &it) != nil {
			continue
		}
		switch {
		case it.Type == "compaction" || it.Type == "compaction_summary":
			b.Blocks = append(b.Blocks, eventlog.ProviderBlock{Provider: content.OpenAI, JSON: string(item)})
		case it.Type == "message" && it.Role == "user" && len(it.Content) == 1 && it.Content[0].Text == c.Summary && c.Summary != "":
			b.Blocks = append(b.Blocks, eventlog.Text{Text: c.Summary})
		}
	}
	if len(b.Blocks) == 0 && c.Summary != "" {
		b.Blocks = []eventlog.Block{eventlog.Text{Text: c.Summary}}
	}
	return b
}
