package render

import (
	"bytes"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// geminiResults makes the responses of a tool's message, and in Elsewhere the media
// that they hold.
func geminiResults(c *content) []Fragment {
	var media [][]byte
	for i, block := range c.message.Blocks {
		r, ok := block.(eventlog.ToolResult)
		if !ok {
			geminiInput(c, i, block)
			continue
		}
		text, parts := geminiOutput(c, i, r)
		media = append(media, parts...)
		o := begin(len(text))
		o.dst = append(o.dst, `"functionResponse":{`...)
		o.always("id", c.message.callID(i, r.CallID))
		o.always("name", wireName(r.ToolName, longestGeminiName, geminiNameByte))
		o.name("response")
		out := object{dst: append(o.dst, '{')}
		if r.IsError {
			out.always("error", text)
		} else {
			out.always("output", text)
		}
		c.add(said, i, append(out.dst, '}', '}', '}'))
	}
	fragments := c.fragments(speakerUser)
	if len(fragments) > 0 && len(media) > 0 {
		fragments[0].Elsewhere = bytes.Join(media, []byte{','})
	}
	return fragments
}

// named gives results the names of their calls where the runtime gave them others:
// Gemini matches them.
func named(fragments []Fragment) []Fragment {
	out := slices.Clone(fragments)
	names := map[string]string{} // by the call's id in the format
	for n := range out {
		f := &out[n]
		var blocks []eventlog.Block // with other names; nil if none has another
		for i, block := range f.Blocks {
			switch b := block.(type) {
			case eventlog.ToolCall:
				names[f.callID(i, b.CallID)] = b.Name
			case eventlog.ToolResult:
				name, made := names[f.callID(i, b.CallID)]
				if f.Role != eventlog.RoleTool || !made || name == b.ToolName {
					continue
				}
				if blocks == nil {
					blocks = slices.Clone(f.Blocks)
				}
				b.ToolName = name
				blocks[i] = b
			}
		}
		if blocks != nil {
			m := f.Message
			m.Blocks = blocks
			remade := geminiResults(&content{message: &m})[0]
			remade.Conversions = besides(f.Conversions, remade.Conversions)
			*f = remade
		}
	}
	return out
}

// geminiOutput is the text of a result, and the media after it, to which the text
// refers.
func geminiOutput(c *content, i int, r eventlog.ToolResult) (string, [][]byte) {
	var texts []string
	var media [][]byte
	for _, block := range r.Content {
		switch b := block.(type) {
		case eventlog.Text:
			if b.Text != "" {
				texts = append(texts, b.Text)
			}
		case eventlog.Media:
			part, name, ok := geminiMediaPart(b, "")
			if !ok {
				texts = append(texts, c.describe(i, describeMedia(b)))
				continue
			}
			c.renamedMedia(i, b, name)
			c.converted(i, Moved, describeMedia(b))
			texts = append(texts, "["+name+" below]")
			media = append(media, part)
		case eventlog.ProviderBlock:
			texts = append(texts, c.foreign(i, b))
		default:
			texts = append(texts, c.describe(i, "tool block"))
		}
	}
	return strings.Join(texts, "\n"), media
}
