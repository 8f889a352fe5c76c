package disklog

import (
	"maps"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
	"google.golang.org/protobuf/encoding/protowire"
)

// appendEvent encodes all of an event but seq, which is in the key, and the
// head, which is known only when the event has its place. It writes
// storagev1.Event without building one: this is most of what an append costs
// before the disk.
func appendEvent(b []byte, e eventlog.Event) []byte {
	b = appendString(b, 1, e.ID)
	b = appendInt(b, 2, uint64(e.Time.Unix()))
	b = appendInt(b, 3, uint64(e.Time.Nanosecond()))
	if len(e.Labels) > 0 {
		b = appendLabels(b, e.Labels)
	}
	if t := e.Tokens; t.Tokenizer != "" || len(t.Blocks) > 0 || t.Estimated {
		b = appendMessage(b, 5, func(b []byte) []byte { return appendTokens(b, t) })
	}
	switch body := e.Body.(type) {
	case *eventlog.Message:
		b = appendMessage(b, 6, func(b []byte) []byte {
			b = appendInt(b, 1, uint64(body.Role))
			b = appendBlocks(b, 2, body.Blocks)
			b = appendString(b, 3, body.GroupID)
			b = appendString(b, 4, body.Model)
			return appendBool(b, 5, body.Pinned)
		})
	case *eventlog.Reminder:
		b = appendMessage(b, 7, func(b []byte) []byte { return appendReminder(b, body) })
	case *eventlog.Compaction:
		b = appendMessage(b, 8, func(b []byte) []byte { return appendCompaction(b, body) })
	case *eventlog.Custom:
		b = appendMessage(b, 9, func(b []byte) []byte { return appendString(appendString(b, 1, body.Type), 2, body.JSON) })
	}
	return b
}

func appendLabels(b []byte, labels map[string]string) []byte {
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		b = appendMessage(b, 4, func(b []byte) []byte { return appendElement(appendElement(b, 1, k), 2, labels[k]) })
	}
	return b
}

func appendTokens(b []byte, t eventlog.TokenCounts) []byte {
	b = appendString(b, 1, t.Tokenizer)
	if len(t.Blocks) > 0 {
		b = appendMessage(b, 2, func(b []byte) []byte {
			for _, n := range t.Blocks {
				b = protowire.AppendVarint(b, uint64(n))
			}
			return b
		})
	}
	return appendBool(b, 3, t.Estimated)
}

func appendReminder(b []byte, r *eventlog.Reminder) []byte {
	b = appendString(b, 1, r.Body)
	if r.TTLTurns != nil {
		b = appendPresent(b, 2, uint64(*r.TTLTurns))
	}
	b = appendString(b, 3, r.DedupeKey)
	b = appendBool(b, 4, r.PreserveOnCompact)
	b = appendInt(b, 5, uint64(r.RoleHint))
	for _, tag := range r.Tags {
		b = appendElement(b, 6, tag)
	}
	return appendString(b, 7, r.Source)
}

func appendCompaction(b []byte, c *eventlog.Compaction) []byte {
	b = appendInt(b, 1, uint64(c.Trigger))
	b = appendString(b, 2, c.Summary)
	if c.PreTokens != nil {
		b = appendPresent(b, 3, *c.PreTokens)
	}
	if c.PostTokens != nil {
		b = appendPresent(b, 4, *c.PostTokens)
	}
	for _, id := range c.KeptEventIDs {
		b = appendElement(b, 5, id)
	}
	b = appendString(b, 6, c.Mode)
	b = appendString(b, 7, c.Strategy)
	b = appendString(b, 8, c.NativeJSON)
	if c.Decision == nil {
		return b
	}
	return appendMessage(b, 9, func(b []byte) []byte { return appendDecision(b, c.Decision) })
}

func appendDecision(b []byte, d *eventlog.Decision) []byte {
	b = appendInt(b, 1, uint64(d.Through))
	b = appendInt(b, 2, d.DigestTokens)
	if len(d.Kept) > 0 {
		b = appendMessage(b, 3, func(b []byte) []byte {
			for _, seq := range d.Kept {
				b = protowire.AppendVarint(b, uint64(seq))
			}
			return b
		})
	}
	for _, at := range d.Masked {
		b = appendMessage(b, 4, func(b []byte) []byte { return appendInt(appendInt(b, 1, uint64(at.Seq)), 2, uint64(at.Block)) })
	}
	b = appendString(b, 5, d.SummaryID)
	b = appendInt(b, 6, uint64(d.SummaryThrough))
	b = appendString(b, 7, d.SummaryBy)
	return appendInt(b, 8, uint64(d.Undoes))
}

func appendBlocks(b []byte, field protowire.Number, blocks []eventlog.Block) []byte {
	for _, block := range blocks {
		b = appendMessage(b, field, func(b []byte) []byte { return appendBlock(b, block) })
	}
	return b
}

func appendBlock(b []byte, block eventlog.Block) []byte {
	switch block := block.(type) {
	case eventlog.Text:
		return appendMessage(b, 1, func(b []byte) []byte { return appendString(b, 1, block.Text) })
	case eventlog.Thinking:
		return appendMessage(b, 2, func(b []byte) []byte {
			b = appendString(appendString(b, 1, block.Text), 2, block.Signature)
			return appendString(appendString(b, 3, block.RedactedData), 4, block.EncryptedContent)
		})
	case eventlog.ToolCall:
		return appendMessage(b, 3, func(b []byte) []byte {
			return appendString(appendString(appendString(b, 1, block.CallID), 2, block.Name), 3, block.Arguments)
		})
	case eventlog.ToolResult:
		return appendMessage(b, 4, func(b []byte) []byte {
			b = appendString(appendString(b, 1, block.CallID), 2, block.ToolName)
			return appendBool(appendBlocks(b, 3, block.Content), 4, block.IsError)
		})
	case eventlog.Media:
		return appendMessage(b, 5, func(b []byte) []byte {
			b = appendString(appendString(appendString(b, 1, block.MIMEType), 2, block.Data), 3, block.URI)
			return appendInt(b, 4, uint64(block.Tokens))
		})
	case eventlog.ProviderBlock:
		return appendMessage(b, 6, func(b []byte) []byte { return appendString(appendString(b, 1, block.Provider), 2, block.JSON) })
	}
	return b
}
