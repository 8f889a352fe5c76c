package codex

import (
	"encoding/json"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// compacted is the boundary: its list replaced the prompt so far. The summary may
// be the provider's secret; then only the marker holds it.
func (r *reader) compacted(entry transcript.Entry, payload json.RawMessage, n *notes) error {
	var c compacted
	if err := transcript.DecodePart(payload, &c); err != nil {
		return err
	}
	body := &eventlog.Compaction{Summary: c.Message, NativeJSON: transcript.Compact(entry.Native)}
	if n != nil && n.Compaction != nil {
		n.Compaction.into(body)
	}
	seen := map[string]bool{}
	for _, raw := range c.ReplacementHistory {
		var it item
		if transcript.DecodePart(raw, &it) != nil {
			continue
		}
		if id := r.items[it.key()]; id != "" && !seen[id] {
			seen[id] = true
			body.KeptEventIDs = append(body.KeptEventIDs, id)
		}
	}
	r.reply = ""
	entry.Body, entry.Native = body, nil
	r.session.Append(entry)
	return nil
}

// key tells items apart by what they say; empty for one that nothing can name.
func (it *item) key() string {
	switch {
	case it.Type == "message":
		return it.Role + "\n" + textOf(it.Content)
	case it.Type == "reasoning" && it.EncryptedContent != "":
		return it.Type + "\n" + it.EncryptedContent
	case it.Type == "reasoning" && it.reasoning() != "":
		return it.Type + "\n" + it.reasoning()
	case it.CallID != "":
		return it.Type + "\n" + it.CallID
	}
	return ""
}

var triggerNames = map[eventlog.CompactionTrigger]string{
	eventlog.TriggerManual: "manual", eventlog.TriggerThreshold: "threshold", eventlog.TriggerBudgetPressure: "budget_pressure",
}

// compactionNotes is what a boundary of another maker says that this harness does
// not.
type compactionNotes struct {
	Trigger    string  `json:"trigger,omitempty"`
	Mode       string  `json:"mode,omitempty"`
	Strategy   string  `json:"strategy,omitempty"`
	PreTokens  *uint64 `json:"pre_tokens,omitempty"`
	PostTokens *uint64 `json:"post_tokens,omitempty"`
}

func (n *compactionNotes) into(c *eventlog.Compaction) {
	for trigger, name := range triggerNames {
		if name == n.Trigger {
			c.Trigger = trigger
		}
	}
	c.Mode, c.Strategy, c.PreTokens, c.PostTokens = n.Mode, transcript.Clean(n.Strategy), n.PreTokens, n.PostTokens
}
