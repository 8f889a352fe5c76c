package eventcodec

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Append encodes an event without its Seq and Turn, and without the head after it: these are known only when the
// event is admitted. It writes storagev1.Event directly and builds no message, because encoding is most of an
// append's cost before the disk.
func Append(b []byte, e eventlog.Event) []byte {
	b = AppendString(b, 1, e.ID)
	b = AppendInt(b, 2, uint64(e.Time.Unix()))
	b = AppendInt(b, 3, uint64(e.Time.Nanosecond()))
	if len(e.Labels) > 0 {
		b = appendLabels(b, e.Labels)
	}
	if t := e.Tokens; t.Tokenizer != "" || len(t.Blocks) > 0 || t.Estimated {
		b = AppendMessage(b, 5, func(b []byte) []byte { return appendTokens(b, t) })
	}
	switch body := e.Body.(type) {
	case *eventlog.Message:
		b = AppendMessage(b, 6, func(b []byte) []byte {
			b = AppendInt(b, 1, uint64(body.Role))
			b = appendBlocks(b, 2, body.Blocks)
			b = AppendString(b, 3, body.GroupID)
			b = AppendString(b, 4, body.Model)
			return AppendBool(b, 5, body.Pinned)
		})
	case *eventlog.Reminder:
		b = AppendMessage(b, 7, func(b []byte) []byte { return appendReminder(b, body) })
	case *eventlog.Compaction:
		b = AppendMessage(b, 8, func(b []byte) []byte { return appendCompaction(b, body) })
	case *eventlog.Custom:
		b = AppendMessage(b, 9, func(b []byte) []byte { return AppendString(AppendString(b, 1, body.Type), 2, body.JSON) })
	}
	return b
}

func appendLabels(b []byte, labels map[string]string) []byte {
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		b = AppendMessage(b, 4, func(b []byte) []byte { return AppendElement(AppendElement(b, 1, k), 2, labels[k]) })
	}
	return b
}

func appendTokens(b []byte, t eventlog.TokenCounts) []byte {
	b = AppendString(b, 1, t.Tokenizer)
	if len(t.Blocks) > 0 {
		b = AppendMessage(b, 2, func(b []byte) []byte {
			for _, n := range t.Blocks {
				b = protowire.AppendVarint(b, uint64(n))
			}
			return b
		})
	}
	return AppendBool(b, 3, t.Estimated)
}

func appendReminder(b []byte, r *eventlog.Reminder) []byte {
	b = AppendString(b, 1, r.Body)
	if r.TTLTurns != nil {
		b = appendPresent(b, 2, uint64(*r.TTLTurns))
	}
	b = AppendString(b, 3, r.DedupeKey)
	b = AppendBool(b, 4, r.PreserveOnCompact)
	b = AppendInt(b, 5, uint64(r.RoleHint))
	for _, tag := range r.Tags {
		b = AppendElement(b, 6, tag)
	}
	return AppendString(b, 7, r.Source)
}

func appendCompaction(b []byte, c *eventlog.Compaction) []byte {
	b = AppendInt(b, 1, uint64(c.Trigger))
	b = AppendString(b, 2, c.Summary)
	if c.PreTokens != nil {
		b = appendPresent(b, 3, *c.PreTokens)
	}
	if c.PostTokens != nil {
		b = appendPresent(b, 4, *c.PostTokens)
	}
	for _, id := range c.KeptEventIDs {
		b = AppendElement(b, 5, id)
	}
	b = AppendString(b, 6, c.Mode)
	b = AppendString(b, 7, c.Strategy)
	b = AppendString(b, 8, c.NativeJSON)
	if c.Decision == nil {
		return b
	}
	return AppendMessage(b, 9, func(b []byte) []byte { return appendDecision(b, c.Decision) })
}

func appendDecision(b []byte, d *eventlog.CompactionDecision) []byte {
	b = AppendInt(b, 1, uint64(d.Through))
	b = AppendInt(b, 2, d.DigestTokens)
	if len(d.Kept) > 0 {
		b = AppendMessage(b, 3, func(b []byte) []byte {
			for _, seq := range d.Kept {
				b = protowire.AppendVarint(b, uint64(seq))
			}
			return b
		})
	}
	for _, at := range d.Masked {
		b = AppendMessage(b, 4, func(b []byte) []byte { return AppendInt(AppendInt(b, 1, uint64(at.Seq)), 2, uint64(at.Block)) })
	}
	b = AppendString(b, 5, d.SummaryID)
	b = AppendInt(b, 6, uint64(d.SummaryThrough))
	b = AppendString(b, 7, d.SummaryBy)
	b = AppendInt(b, 8, uint64(d.Undoes))
	return AppendInt(b, 9, uint64(d.LateAfter))
}

func appendBlocks(b []byte, field protowire.Number, blocks []eventlog.Block) []byte {
	for _, block := range blocks {
		b = AppendMessage(b, field, func(b []byte) []byte { return appendBlock(b, block) })
	}
	return b
}

func appendBlock(b []byte, block eventlog.Block) []byte {
	switch block := block.(type) {
	case eventlog.Text:
		return AppendMessage(b, 1, func(b []byte) []byte { return AppendString(b, 1, block.Text) })
	case eventlog.Thinking:
		return AppendMessage(b, 2, func(b []byte) []byte {
			b = AppendString(AppendString(b, 1, block.Text), 2, block.Signature)
			return AppendString(AppendString(b, 3, block.RedactedData), 4, block.EncryptedContent)
		})
	case eventlog.ToolCall:
		return AppendMessage(b, 3, func(b []byte) []byte {
			return AppendString(AppendString(AppendString(b, 1, block.CallID), 2, block.Name), 3, block.Arguments)
		})
	case eventlog.ToolResult:
		return AppendMessage(b, 4, func(b []byte) []byte {
			b = AppendString(AppendString(b, 1, block.CallID), 2, block.ToolName)
			return AppendBool(appendBlocks(b, 3, block.Content), 4, block.IsError)
		})
	case eventlog.Media:
		return AppendMessage(b, 5, func(b []byte) []byte {
			b = AppendString(AppendString(AppendString(b, 1, block.MIMEType), 2, block.Data), 3, block.URI)
			return AppendInt(b, 4, uint64(block.Tokens))
		})
	case eventlog.ProviderBlock:
		return AppendMessage(b, 6, func(b []byte) []byte { return AppendString(AppendString(b, 1, block.Provider), 2, block.JSON) })
	}
	return b
}
