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

// compacted reads a compaction, whose list replaced the prompt before it. The summary may be encrypted by the
// provider; then only the compaction's native JSON holds it.
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

// begins reports whether the session has no message of a human or the model yet.
func (r *reader) begins() bool {
	all := r.session.Since(0)
	for ; !r.begun && r.looked < len(all); r.looked++ {
		m, ok := all[r.looked].Body.(*eventlog.Message)
		r.begun = ok && m.Role != eventlog.RoleSystem && !all[r.looked].Injected()
	}
	return !r.begun
}

// replaced appends an item that a compaction lists, but that has no record in the file, as a message before
// the compaction.
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
	if about, ok := it.injected(); ok && m.Role != eventlog.RoleAssistant || m.Role == eventlog.RoleSystem {
		injectedLabels(entry.Labels, about)
	}
	if id := r.session.Append(entry); id != "" {
		r.note(it, id)
		if m.Role == eventlog.RoleUser && entry.Labels[transcript.LabelInjected] == "" {
			r.asked = append(r.asked, asked{id, len(textOf(it.Content))})
		}
	}
}

// asked is a message of the user.
type asked struct {
	event string
	bytes int
}

// keptBytes is how many bytes of the user's messages a compaction without a list keeps: the harness counts four bytes
// as a token, and keeps up to 20,000 tokens.
const keptBytes = 4 * 20_000

// newest returns the user's messages that such a compaction keeps. The harness truncates the oldest of them to
// the limit; here it is kept whole.
func newest(all []asked) []asked {
	i := len(all)
	for left := keptBytes; i > 0 && left > 0; i-- {
		left -= all[i-1].bytes
	}
	return all[i:]
}

// unread reads a boundary that contextd wrote for a compaction without a summary. The harness ignores the
// record.
func (r *reader) unread(entry transcript.Entry, n *compactionNotes) {
	body := &eventlog.Compaction{NativeJSON: transcript.Compact(entry.Native)}
	n.into(body)
	var kept []string
	for _, line := range n.Kept {
		kept = append(kept, transcript.PositionID(transcript.Record{Line: line}))
	}
	body.KeptEventIDs = r.session.InOrder(kept)
	r.session.Boundary(entry, body)
}

// boundary returns what the model gets instead of the dropped messages. If the compaction has a list, Codex sends
// only that: blocks are the summary in it, or items that only the provider can decrypt. If there is no list, the
// summary follows the kept messages.
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

// key identifies an item by its content; empty for one that no compaction can refer to.
func (it *item) key() string {
	switch {
	case it.Type == "message":
		return it.Role + "\n" + textOf(it.Content)
	case it.Type == agentMessage: // made from an event alone, it is written as a message
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

// compactionNotes are the fields of a compaction that the harness did not make and has no place for.
type compactionNotes struct {
	transcript.Provenance
	PreTokens  *uint64 `json:"pre_tokens,omitzero"`
	PostTokens *uint64 `json:"post_tokens,omitzero"`
	// Kept are the lines of the items that were kept, if the record has no list of them.
	Kept []int `json:"kept,omitzero"`
}

func (n *compactionNotes) into(c *eventlog.Compaction) {
	n.Provenance.Into(c)
	c.PreTokens, c.PostTokens = n.PreTokens, n.PostTokens
}
