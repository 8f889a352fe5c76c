package disklog

import (
	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// eventMessage is the simple way to encode an event: the protobuf message that
// eventcodec.Append must write, for the generated code to marshal.
func eventMessage(e eventlog.Event) *storagev1.Event {
	m := &storagev1.Event{
		EventId:     e.ID,
		TimeSeconds: e.Time.Unix(),
		TimeNanos:   int32(e.Time.Nanosecond()),
		Labels:      e.Labels,
	}
	if t := e.Tokens; t.Tokenizer != "" || len(t.Blocks) > 0 || t.Estimated {
		m.Tokens = &storagev1.TokenCounts{Tokenizer: t.Tokenizer, Blocks: t.Blocks, Estimated: t.Estimated}
	}
	switch body := e.Body.(type) {
	case *eventlog.Message:
		m.Kind = &storagev1.Event_Message{Message: &storagev1.Message{
			Role:    storagev1.Role(body.Role),
			Blocks:  encodeBlocks(body.Blocks),
			GroupId: body.GroupID,
			Model:   body.Model,
			Pinned:  body.Pinned,
		}}
	case *eventlog.Reminder:
		m.Kind = &storagev1.Event_Reminder{Reminder: &storagev1.Reminder{
			Body:              body.Body,
			TtlTurns:          body.TTLTurns,
			DedupeKey:         body.DedupeKey,
			PreserveOnCompact: body.PreserveOnCompact,
			RoleHint:          storagev1.Role(body.RoleHint),
			Tags:              body.Tags,
			Source:            body.Source,
		}}
	case *eventlog.Compaction:
		m.Kind = &storagev1.Event_Compaction{Compaction: &storagev1.Compaction{
			Trigger:      storagev1.CompactionTrigger(body.Trigger),
			Summary:      body.Summary,
			PreTokens:    body.PreTokens,
			PostTokens:   body.PostTokens,
			KeptEventIds: body.KeptEventIDs,
			Mode:         body.Mode,
			Strategy:     body.Strategy,
			NativeJson:   []byte(body.NativeJSON),
			Decision:     encodeDecision(body.Decision),
		}}
	case *eventlog.Custom:
		m.Kind = &storagev1.Event_Custom{Custom: &storagev1.Custom{Type: body.Type, Json: []byte(body.JSON)}}
	}
	return m
}

func encodeDecision(d *eventlog.CompactionDecision) *storagev1.CompactionDecision {
	if d == nil {
		return nil
	}
	out := &storagev1.CompactionDecision{
		ThroughSeq: uint64(d.Through), DigestTokens: d.DigestTokens, SummaryId: d.SummaryID,
		SummaryThroughSeq: uint64(d.SummaryThrough), SummaryBy: d.SummaryBy, UndoesSeq: uint64(d.Undoes), LateAfterSeq: uint64(d.LateAfter),
	}
	for _, seq := range d.Kept {
		out.KeptSeqs = append(out.KeptSeqs, uint64(seq))
	}
	for _, at := range d.Masked {
		out.Masked = append(out.Masked, &storagev1.BlockPlace{Seq: uint64(at.Seq), Block: uint32(at.Block)})
	}
	return out
}

func encodeBlocks(blocks []eventlog.Block) []*storagev1.Block {
	out := make([]*storagev1.Block, len(blocks))
	for i, b := range blocks {
		out[i] = encodeBlock(b)
	}
	return out
}

func encodeBlock(b eventlog.Block) *storagev1.Block {
	switch b := b.(type) {
	case eventlog.Text:
		return &storagev1.Block{Kind: &storagev1.Block_Text{Text: &storagev1.Text{Text: b.Text}}}
	case eventlog.Thinking:
		return &storagev1.Block{Kind: &storagev1.Block_Thinking{Thinking: &storagev1.Thinking{
			Text:             b.Text,
			Signature:        b.Signature,
			RedactedData:     []byte(b.RedactedData),
			EncryptedContent: b.EncryptedContent,
		}}}
	case eventlog.ToolCall:
		return &storagev1.Block{Kind: &storagev1.Block_ToolCall{ToolCall: &storagev1.ToolCall{
			CallId:        b.CallID,
			Name:          b.Name,
			ArgumentsJson: []byte(b.Arguments),
		}}}
	case eventlog.ToolResult:
		return &storagev1.Block{Kind: &storagev1.Block_ToolResult{ToolResult: &storagev1.ToolResult{
			CallId:   b.CallID,
			ToolName: b.ToolName,
			Content:  encodeBlocks(b.Content),
			IsError:  b.IsError,
		}}}
	case eventlog.Media:
		return &storagev1.Block{Kind: &storagev1.Block_Media{Media: &storagev1.Media{
			MimeType: b.MIMEType,
			Data:     []byte(b.Data),
			Uri:      b.URI,
			Tokens:   b.Tokens,
		}}}
	case eventlog.ProviderBlock:
		return &storagev1.Block{Kind: &storagev1.Block_Provider{Provider: &storagev1.ProviderBlock{
			Provider: b.Provider,
			Json:     []byte(b.JSON),
		}}}
	default:
		return &storagev1.Block{}
	}
}
