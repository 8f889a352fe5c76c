package render

import (
	"encoding/base64"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// NameContextd names contextd's own format.
const NameContextd = ""

// contextd is contextd's own format: each message by itself.
var contextd = Format{
	Name: NameContextd, Join: whole, OneByOne: true, Framing: budget.NoFraming,
	Fragments: func(m Message) []Fragment {
		return []Fragment{{Message: m, Speaker: m.Role.String(), JSON: AppendJSON(nil, m)}}
	},
}

// AppendJSON appends the canonical bytes of a message in contextd's own format:
// one JSON object without insignificant whitespace, members in the order of the
// schema, absent fields left out. docs/format.md gives the schema and test
// vectors.
func AppendJSON(dst []byte, m Message) []byte {
	dst = append(dst, `{"role":"`...)
	dst = append(dst, m.Role.String()...)
	dst = append(dst, `","blocks":[`...)
	dst = appendBlocks(dst, m.Blocks)
	return append(dst, `]}`...)
}

func appendBlocks(dst []byte, blocks []eventlog.Block) []byte {
	for i, b := range blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendBlock(dst, b)
	}
	return dst
}

func appendBlock(dst []byte, block eventlog.Block) []byte {
	o := object{dst: dst}
	switch b := block.(type) {
	case eventlog.Text:
		o.open("text")
		o.always("text", b.Text)
	case eventlog.Thinking:
		o.open("thinking")
		o.str("text", b.Text)
		o.str("signature", b.Signature)
		o.base64("redacted_data", b.RedactedData)
		o.str("encrypted_content", b.EncryptedContent)
	case eventlog.ToolCall:
		o.open("tool_call")
		o.always("call_id", b.CallID)
		o.always("name", b.Name)
		if eventlog.IsJSON(b.Arguments) {
			o.raw("arguments_json", b.Arguments)
		} else {
			o.str("arguments_text", b.Arguments)
		}
	case eventlog.ToolResult:
		o.open("tool_result")
		o.always("call_id", b.CallID)
		o.str("tool_name", b.ToolName)
		o.name("content")
		o.dst = append(o.dst, '[')
		o.dst = appendBlocks(o.dst, b.Content)
		o.dst = append(o.dst, ']')
		if b.IsError {
			o.raw("is_error", "true")
		}
	case eventlog.Media:
		o.open("media")
		o.str("mime_type", b.MIMEType)
		o.base64("data", b.Data)
		o.str("uri", b.URI)
	case eventlog.ProviderBlock:
		o.open("provider")
		o.str("provider", b.Provider)
		o.raw("json", b.JSON)
	}
	return append(o.dst, '}', '}')
}

// object writes the members of one JSON object.
type object struct {
	dst     []byte
	members int
}

// open begins {"kind":{ .
func (o *object) open(kind string) {
	o.dst = append(o.dst, '{', '"')
	o.dst = append(o.dst, kind...)
	o.dst = append(o.dst, '"', ':', '{')
}

func (o *object) name(name string) {
	if o.members > 0 {
		o.dst = append(o.dst, ',')
	}
	o.members++
	o.dst = append(o.dst, '"')
	o.dst = append(o.dst, name...)
	o.dst = append(o.dst, '"', ':')
}

func (o *object) always(name, value string) {
	o.name(name)
	o.dst = appendString(o.dst, value)
}

func (o *object) str(name, value string) {
	if value != "" {
		o.always(name, value)
	}
}

func (o *object) raw(name, json string) {
	if json != "" {
		o.name(name)
		o.dst = appendRaw(o.dst, json)
	}
}

func (o *object) base64(name, data string) {
	if data != "" {
		o.name(name)
		o.dst = append(o.dst, '"')
		o.dst = base64.StdEncoding.AppendEncode(o.dst, []byte(data))
		o.dst = append(o.dst, '"')
	}
}
