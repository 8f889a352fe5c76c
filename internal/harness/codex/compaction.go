package codex

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// compacted is the boundary: its list replaced the prompt so far. The summary may
// be the provider's secret; then only the marker holds it.
func (r *reader) compacted(entry transcript.Entry, payload jsontext.Value, n *notes) error {
	var c compacted
	if err := transcript.Decode(payload, &c); err != nil {
		return err
	}
	body := &eventlog.Compaction{Summary: c.Message, NativeJSON: transcript.Compact(entry.Native)}
	if n != nil && n.Compaction != nil {
		n.Compaction.into(body)
	}
	kept := map[string]bool{}
	keep := func(id string) {
		if id != "" && !kept[id] {
			kept[id] = true
			body.KeptEventIDs = append(body.KeptEventIDs, id)
		}
	}
	if c.ReplacementHistory == nil {
		for _, a := range newest(r.asked) {
			keep(a.event)
		}
	}
	begins := r.begins()
	for i, raw := range c.ReplacementHistory {
		var it item
		if transcript.Decode(raw, &it) != nil {
			continue
		}
		if begins && r.items[it.key()] == "" && it.Type == "message" && textOf(it.Content) != c.Message {
			r.replaced(entry, &it, i)
		}
		keep(r.items[it.key()])
	}
	r.asked = slices.DeleteFunc(r.asked, func(a asked) bool { return !kept[a.event] })
	r.reply = ""
	r.session.Boundary(entry, body)
	return nil
}

// begins reports whether nobody but the harness has spoken yet.
func (r *reader) begins() bool {
	return !slices.ContainsFunc(r.session.Since(0), func(e eventlog.Event) bool {
		m, ok := e.Body.(*eventlog.Message)
		return ok && m.Role != eventlog.RoleSystem && !e.Injected()
	})
}

// replaced appends a message of a conversation that the file does not have, before the
// compaction that lists it.
func (r *reader) replaced(entry transcript.Entry, it *item, i int) {
	blocks, err := content.ChatBlocks(it.Content)
	if err != nil {
		r.out.Warn(entry.Line, "item %d of what the compaction left has an unexpected shape: %v", i+1, err)
		return
	}
	m := &eventlog.Message{Role: eventlog.RoleUser, Blocks: blocks}
	entry.ID += "/item-" + strconv.Itoa(i+1)
	entry.Labels, entry.Body = map[string]string{transcript.LabelReplaced: "true"}, m
	switch it.Role {
	case "assistant":
		m.Role = eventlog.RoleAssistant
	case "developer", "system":
		m.Role = eventlog.RoleSystem
	}
	if tells, ok := it.injected(); ok && m.Role != eventlog.RoleAssistant || m.Role == eventlog.RoleSystem {
		injectedLabels(entry.Labels, tells)
	}
	if id := r.session.Append(entry); id != "" {
		r.note(it, id)
		if m.Role == eventlog.RoleUser && entry.Labels[transcript.LabelInjected] == "" {
			r.asked = append(r.asked, asked{id, len(textOf(it.Content))})
		}
	}
}

// asked is a message of the user's.
type asked struct {
	event string
	bytes int
}

// keptBytes is how much of the user's messages stays where a compaction has no list of
// what does: the harness counts four bytes a token, up to 20,000.
const keptBytes = 4 * 20_000

// newest are the user's messages that stay then. The harness cuts the oldest of them to
// what is left; it is kept whole here.
func newest(all []asked) []asked {
	i := len(all)
	for left := keptBytes; i > 0 && left > 0; i-- {
		left -= all[i-1].bytes
	}
	return all[i:]
}

// unread is the boundary of another maker's that has no summary: the harness goes on as if
// it were not there.
func (r *reader) unread(entry transcript.Entry, n *compactionNotes) {
	body := &eventlog.Compaction{NativeJSON: transcript.Compact(entry.Native)}
	n.into(body)
	kept := map[string]bool{}
	for _, line := range n.Kept {
		kept[transcript.PositionID(transcript.Record{Line: line})] = true
	}
	if len(kept) > 0 {
		for _, e := range r.session.Since(0) {
			if kept[e.ID] {
				body.KeptEventIDs = append(body.KeptEventIDs, e.ID)
			}
		}
	}
	r.session.Boundary(entry, body)
}

// boundary finds what takes the place of what was dropped in the list that replaced the
// prompt: the summary as a text, or items that only the provider can read. Where there is
// such a list Codex reads that alone; where there is none, the summary follows what it kept.
func boundary(c *eventlog.Compaction) (b transcript.Boundary, ok bool) {
	var native struct {
		Type    string `json:"type"`
		Payload struct {
			History []jsontext.Value `json:"replacement_history"`
		} `json:"payload"`
	}
	if c.NativeJSON == "" || json.Unmarshal([]byte(c.NativeJSON), &native) != nil || native.Type != compactedType {
		return b, false
	}
	b.Last = true
	for _, raw := range native.Payload.History {
		var it struct {
			Type    string `json:"type"`
			Role    string `json:"role"`
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		}
		if json.Unmarshal(raw, &it) != nil {
			continue
		}
		switch {
		case it.Type == "compaction" || it.Type == "compaction_summary":
			b.Blocks = append(b.Blocks, eventlog.ProviderBlock{Provider: content.OpenAI, JSON: string(raw)})
		case it.Type == "message" && it.Role == "user" && len(it.Content) == 1 && it.Content[0].Text == c.Summary && c.Summary != "":
			b.Blocks = append(b.Blocks, eventlog.Text{Text: c.Summary})
		}
	}
	if len(b.Blocks) == 0 && c.Summary != "" {
		b.Blocks = []eventlog.Block{eventlog.Text{Text: c.Summary}}
	}
	return b, true
}

// key distinguishes items by what they say; empty for one that nothing can name.
func (it *item) key() string {
	switch {
	case it.Type == "message":
		return it.Role + "\n" + textOf(it.Content)
	case it.Type == agentMessage: // where nothing is known but its event, it is written as a message
		return "user\n" + textOf(it.Content)
	case it.Type == "reasoning" && it.EncryptedContent != "":
		return it.Type + "\n" + it.EncryptedContent
	case it.Type == "reasoning" && it.reasoning() != "":
		return it.Type + "\n" + it.reasoning()
	case it.CallID != "":
		return it.Type + "\n" + it.CallID
	case it.Type == "web_search_call":
		return it.Type + "\n" + transcript.Compact(it.Action)
	}
	return ""
}

// compactionNotes is what a boundary of another maker says that this harness does
// not.
type compactionNotes struct {
	transcript.Provenance
	PreTokens  *uint64 `json:"pre_tokens,omitzero"`
	PostTokens *uint64 `json:"post_tokens,omitzero"`
	// Kept are the lines of the items that stayed, where the record has no list of them.
	Kept []int `json:"kept,omitzero"`
}

func (n *compactionNotes) into(c *eventlog.Compaction) {
	n.Provenance.Into(c)
	c.PreTokens, c.PostTokens = n.PreTokens, n.PostTokens
}
