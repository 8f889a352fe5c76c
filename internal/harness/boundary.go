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

// codexBoundary finds the item that stands for what left in the list that replaced the
// prompt: a text, or one that only the provider can read.
func codexBoundary(c *eventlog.Compaction, history []json.RawMessage) Boundary {
	b := Boundary{Last: true}
	if c.Summary != "" {
		b.Blocks = []eventlog.Block{eventlog.Text{Text: c.Summary}}
		return b
	}
	for _, item := range history {
		var it struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(item, &it) == nil && (it.Type == "compaction" || it.Type == "compaction_summary") {
			b.Blocks = append(b.Blocks, eventlog.ProviderBlock{Provider: content.OpenAI, JSON: string(item)})
		}
	}
	return b
}
