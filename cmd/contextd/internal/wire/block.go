package wire

import (
	"fmt"
	"unicode/utf8"

	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// blocksToDomain converts blocks. Errors name the field, beginning with field[i].
func blocksToDomain(field string, blocks []*contextdv1.Block) ([]eventlog.Block, error) {
	if len(blocks) == 0 {
		return nil, nil
	}
	out := make([]eventlog.Block, len(blocks))
	for i, b := range blocks {
		converted, err := blockToDomain(b)
		if err != nil {
			return nil, Under(fmt.Sprintf("%s[%d]", field, i), err)
		}
		out[i] = converted
	}
	return out, nil
}

func blockToDomain(b *contextdv1.Block) (eventlog.Block, error) {
	switch kind := b.GetKind().(type) {
	case *contextdv1.Block_Text:
		return eventlog.Text{Text: kind.Text.GetText()}, nil
	case *contextdv1.Block_Thinking:
		return eventlog.Thinking{
			Text:             kind.Thinking.GetText(),
			Signature:        kind.Thinking.GetSignature(),
			RedactedData:     string(kind.Thinking.GetRedactedData()),
			EncryptedContent: kind.Thinking.GetEncryptedContent(),
		}, nil
	case *contextdv1.Block_ToolCall:
		out, err := toolCallToDomain(kind.ToolCall)
		return out, Under("tool_call", err)
	case *contextdv1.Block_ToolResult:
		out, err := toolResultToDomain(kind.ToolResult)
		return out, Under("tool_result", err)
	case *contextdv1.Block_Media:
		out, err := mediaToDomain(kind.Media)
		return out, Under("media", err)
	case *contextdv1.Block_Provider:
		out, err := providerToDomain(kind.Provider)
		return out, Under("provider", err)
	default:
		return nil, invalid("kind", "must be set")
	}
}

func toolCallToDomain(c *contextdv1.ToolCall) (eventlog.Block, error) {
	if err := checkNames(named{"call_id", c.GetCallId()}, named{"name", c.GetName()}); err != nil {
		return nil, err
	}
	// Models may write arguments that are not JSON. Invalid UTF-8 cannot come from a model, and no format
	// could represent it.
	if !utf8.Valid(c.GetArgumentsJson()) {
		return nil, invalid("arguments_json", "must be UTF-8")
	}
	return eventlog.ToolCall{CallID: c.GetCallId(), Name: c.GetName(), Arguments: string(c.GetArgumentsJson())}, nil
}

func toolResultToDomain(r *contextdv1.ToolResult) (eventlog.Block, error) {
	if err := checkNames(named{"call_id", r.GetCallId()}, named{"tool_name", r.GetToolName()}); err != nil {
		return nil, err
	}
	for i, b := range r.GetContent() {
		switch b.GetKind().(type) {
		case *contextdv1.Block_Text, *contextdv1.Block_Media, *contextdv1.Block_Provider:
		default:
			// Refuse it before converting it, so that nesting is bounded.
			return nil, invalid(fmt.Sprintf("content[%d]", i), "a tool result holds text, media and provider blocks only")
		}
	}
	content, err := blocksToDomain("content", r.GetContent())
	if err != nil {
		return nil, err
	}
	return eventlog.ToolResult{CallID: r.GetCallId(), ToolName: r.GetToolName(), Content: content, IsError: r.GetIsError()}, nil
}

func mediaToDomain(m *contextdv1.Media) (eventlog.Block, error) {
	if err := checkNames(named{"mime_type", m.GetMimeType()}, named{"uri", m.GetUri()}); err != nil {
		return nil, err
	}
	return eventlog.Media{MIMEType: m.GetMimeType(), Data: string(m.GetData()), URI: m.GetUri(), Tokens: m.GetTokens()}, nil
}

func providerToDomain(p *contextdv1.ProviderBlock) (eventlog.Block, error) {
	if err := checkNames(named{"provider", p.GetProvider()}); err != nil {
		return nil, err
	}
	if len(p.GetJson()) == 0 {
		return nil, invalid("json", "must not be empty")
	}
	if err := checkJSON("json", p.GetJson()); err != nil {
		return nil, err
	}
	return eventlog.ProviderBlock{Provider: p.GetProvider(), JSON: string(p.GetJson())}, nil
}

// blocksToProto converts blocks of the log.
func blocksToProto(blocks []eventlog.Block) []*contextdv1.Block {
	if len(blocks) == 0 {
		return nil
	}
	out := make([]*contextdv1.Block, len(blocks))
	for i, b := range blocks {
		out[i] = BlockToProto(b)
	}
	return out
}

// BlockToProto converts one block of the log.
func BlockToProto(b eventlog.Block) *contextdv1.Block {
	switch b := b.(type) {
	case eventlog.Text:
		return &contextdv1.Block{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: b.Text}}}
	case eventlog.Thinking:
		return &contextdv1.Block{Kind: &contextdv1.Block_Thinking{Thinking: &contextdv1.Thinking{
			Text: b.Text, Signature: b.Signature, RedactedData: []byte(b.RedactedData), EncryptedContent: b.EncryptedContent,
		}}}
	case eventlog.ToolCall:
		return &contextdv1.Block{Kind: &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{
			CallId: b.CallID, Name: b.Name, ArgumentsJson: []byte(b.Arguments),
		}}}
	case eventlog.ToolResult:
		return &contextdv1.Block{Kind: &contextdv1.Block_ToolResult{ToolResult: &contextdv1.ToolResult{
			CallId: b.CallID, ToolName: b.ToolName, Content: blocksToProto(b.Content), IsError: b.IsError,
		}}}
	case eventlog.Media:
		return &contextdv1.Block{Kind: &contextdv1.Block_Media{Media: &contextdv1.Media{
			MimeType: b.MIMEType, Data: []byte(b.Data), Uri: b.URI, Tokens: b.Tokens,
		}}}
	case eventlog.ProviderBlock:
		return &contextdv1.Block{Kind: &contextdv1.Block_Provider{Provider: &contextdv1.ProviderBlock{
			Provider: b.Provider, Json: []byte(b.JSON),
		}}}
	default:
		return &contextdv1.Block{}
	}
}
