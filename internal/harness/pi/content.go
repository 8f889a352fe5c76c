package pi

import (
	"encoding/base64"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// onLine takes line breaks between tokens out of arguments, which are on a line
// of the file; spaces stay.
func onLine(arguments string) string {
	if strings.ContainsAny(arguments, "\n\r") {
		return transcript.Compact([]byte(arguments))
	}
	return arguments
}

// systemData holds the texts of a system message: one, or a list of several.
func systemData(blocks []eventlog.Block) jsontext.Value {
	texts := transcript.Texts(blocks)
	if len(texts) == 1 {
		return transcript.JSON(texts[0])
	}
	return transcript.List(texts...)
}

// content writes blocks; what pi has no block for is left out with a warning.
func (r *renderer) content(blocks []eventlog.Block) jsontext.Value {
	items := make([]jsontext.Value, 0, len(blocks))
	signature := ""
	for _, block := range blocks {
		switch b := block.(type) {
		case eventlog.Text:
			items = append(items, transcript.Object("type", "text", "text", b.Text))
		case eventlog.Thinking:
			items = append(items, thinkingOf(b))
		case eventlog.ToolCall:
			items = append(items, transcript.Object("type", "toolCall", "id", b.CallID, "name", b.Name,
				"arguments", jsontext.Value(onLine(transcript.WrapArguments(b.Arguments))), "thoughtSignature", transcript.Optional(signature)))
			signature = ""
		case eventlog.Media:
			items = append(items, r.media(b))
		case eventlog.ProviderBlock:
			var ok bool
			if signature, ok = thoughtSignature(b); ok {
				continue
			}
			if b.Provider == Name {
				items = append(items, jsontext.Value(b.JSON))
				continue
			}
			r.warning("a block of %s, of which pi has none, is left out", b.Provider)
		}
	}
	return transcript.List(items...)
}

func thoughtSignature(b eventlog.ProviderBlock) (string, bool) {
	var google struct {
		Signature string `json:"thoughtSignature"`
	}
	if b.Provider != content.Google || transcript.Decode([]byte(b.JSON), &google) != nil {
		return "", false
	}
	return google.Signature, google.Signature != ""
}

func (r *renderer) media(m eventlog.Media) jsontext.Value {
	if m.Data == "" {
		r.warning("media with a URI, which pi cannot hold, is named in a text")
		return transcript.Object("type", "text", "text", "["+m.MIMEType+" "+m.URI+"]")
	}
	return transcript.Object("type", "image", "data", base64.StdEncoding.EncodeToString([]byte(m.Data)), "mimeType", m.MIMEType)
}

// thinkingOf writes encrypted reasoning as pi does, as the text of OpenAI's item.
func thinkingOf(t eventlog.Thinking) jsontext.Value {
	v := transcript.Object("type", "thinking", "thinking", t.Text)
	switch {
	case t.RedactedData != "":
		return transcript.With(v, "thinkingSignature", t.RedactedData, "redacted", true)
	case t.EncryptedContent != "":
		id := content.MadeUpReasoningID(t.EncryptedContent)
		if content.IsReasoningID(t.Signature) {
			id = t.Signature
		}
		var summary []jsontext.Value
		if t.Text != "" {
			summary = append(summary, transcript.Object("type", "summary_text", "text", t.Text))
		}
		item := transcript.Object("id", id, "type", "reasoning", "encrypted_content", t.EncryptedContent, "summary", summary)
		return transcript.With(v, "thinkingSignature", string(item))
	}
	return transcript.With(v, "thinkingSignature", transcript.Optional(t.Signature))
}
