package eventcodec

import (
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// Decode returns a stored event without its Seq and Turn. ok is false if the event's content is of an unknown kind.
func Decode(m *storagev1.Event) (e eventlog.Event, ok bool) {
	e = eventlog.Event{
		ID:     m.GetEventId(),
		Time:   time.Unix(m.GetTimeSeconds(), int64(m.GetTimeNanos())).UTC(),
		Labels: m.GetLabels(),
		Tokens: eventlog.TokenCounts{
			Tokenizer: m.GetTokens().GetTokenizer(),
			Blocks:    m.GetTokens().GetBlocks(),
			Estimated: m.GetTokens().GetEstimated(),
		},
	}
	e.Body, ok = decodeBody(m)
	return e, ok
}

func decodeBody(m *storagev1.Event) (eventlog.Body, bool) {
	switch kind := m.GetKind().(type) {
	case *storagev1.Event_Message:
		b := kind.Message
		blocks, ok := decodeBlocks(b.GetBlocks())
		return &eventlog.Message{
			Role:    eventlog.Role(b.GetRole()),
			Blocks:  blocks,
			GroupID: b.GetGroupId(),
			Model:   b.GetModel(),
			Pinned:  b.GetPinned(),
		}, ok && knownRole(b.GetRole())
	case *storagev1.Event_Reminder:
		b := kind.Reminder
		return &eventlog.Reminder{
			Body:              b.GetBody(),
			TTLTurns:          b.TtlTurns,
			DedupeKey:         b.GetDedupeKey(),
			PreserveOnCompact: b.GetPreserveOnCompact(),
			RoleHint:          eventlog.Role(b.GetRoleHint()),
			Tags:              b.GetTags(),
			Source:            b.GetSource(),
		}, knownRole(b.GetRoleHint())
	case *storagev1.Event_Compaction:
		b := kind.Compaction
		_, known := storagev1.CompactionTrigger_name[int32(b.GetTrigger())]
		return &eventlog.Compaction{
			Trigger:      eventlog.CompactionTrigger(b.GetTrigger()),
			Summary:      b.GetSummary(),
			PreTokens:    b.PreTokens,
			PostTokens:   b.PostTokens,
			KeptEventIDs: b.GetKeptEventIds(),
			Mode:         b.GetMode(),
			Strategy:     b.GetStrategy(),
			NativeJSON:   string(b.GetNativeJson()),
			Decision:     decodeDecision(b.GetDecision()),
		}, known
	case *storagev1.Event_Custom:
		return &eventlog.Custom{Type: kind.Custom.GetType(), JSON: string(kind.Custom.GetJson())}, true
	default:
		return nil, false
	}
}

func decodeDecision(d *storagev1.CompactionDecision) *eventlog.CompactionDecision {
	if d == nil {
		return nil
	}
	out := &eventlog.CompactionDecision{
		Through: eventlog.Seq(d.GetThroughSeq()), DigestTokens: d.GetDigestTokens(),
		SummaryID: d.GetSummaryId(), SummaryThrough: eventlog.Seq(d.GetSummaryThroughSeq()), SummaryBy: d.GetSummaryBy(),
		Undoes: eventlog.Seq(d.GetUndoesSeq()), LateAfter: eventlog.Seq(d.GetLateAfterSeq()),
	}
	for _, seq := range d.GetKeptSeqs() {
		out.Kept = append(out.Kept, eventlog.Seq(seq))
	}
	for _, at := range d.GetMasked() {
		out.Masked = append(out.Masked, eventlog.Place{Seq: eventlog.Seq(at.GetSeq()), Block: int(at.GetBlock())})
	}
	return out
}

func knownRole(r storagev1.Role) bool {
	_, known := storagev1.Role_name[int32(r)]
	return known
}

func decodeBlocks(blocks []*storagev1.Block) ([]eventlog.Block, bool) {
	if len(blocks) == 0 {
		return nil, true
	}
	out := make([]eventlog.Block, len(blocks))
	for i, b := range blocks {
		var ok bool
		if out[i], ok = decodeBlock(b); !ok {
			return nil, false
		}
	}
	return out, true
}

func decodeBlock(b *storagev1.Block) (eventlog.Block, bool) {
	switch kind := b.GetKind().(type) {
	case *storagev1.Block_Text:
		return eventlog.Text{Text: kind.Text.GetText()}, true
	case *storagev1.Block_Thinking:
		t := kind.Thinking
		return eventlog.Thinking{
			Text:             t.GetText(),
			Signature:        t.GetSignature(),
			RedactedData:     string(t.GetRedactedData()),
			EncryptedContent: t.GetEncryptedContent(),
		}, true
	case *storagev1.Block_ToolCall:
		c := kind.ToolCall
		return eventlog.ToolCall{CallID: c.GetCallId(), Name: c.GetName(), Arguments: string(c.GetArgumentsJson())}, true
	case *storagev1.Block_ToolResult:
		r := kind.ToolResult
		content, ok := decodeBlocks(r.GetContent())
		return eventlog.ToolResult{
			CallID:   r.GetCallId(),
			ToolName: r.GetToolName(),
			Content:  content,
			IsError:  r.GetIsError(),
		}, ok
	case *storagev1.Block_Media:
		m := kind.Media
		return eventlog.Media{
			MIMEType: m.GetMimeType(),
			Data:     string(m.GetData()),
			URI:      m.GetUri(),
			Tokens:   m.GetTokens(),
		}, true
	case *storagev1.Block_Provider:
		return eventlog.ProviderBlock{Provider: kind.Provider.GetProvider(), JSON: string(kind.Provider.GetJson())}, true
	default:
		return nil, false
	}
}
