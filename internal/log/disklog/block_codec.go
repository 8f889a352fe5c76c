package disklog

import (
	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

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
