package pi

import (
	"encoding/base64"
	"strings"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	"github.com/contextd/contextd/internal/harness/transcript/jsonvalue"
	eventlog "github.com/contextd/contextd/internal/log"
)

// onLine takes line breaks between tokens out of arguments, which stand on a line
// of the file; spaces stay.
func onLine(arguments string) string {
	if strings.ContainsAny(arguments, "\n\r") {
		return transcript.Compact([]byte(arguments))
	}
	return arguments
}

// systemData holds the texts of a system message: one, or a list of several.
func systemData(blocks []eventlog.Block) jsonvalue.Value {
	var items []jsonvalue.Value
	for _, b := range blocks {
		if t, ok := b.(eventlog.Text); ok {
			items = append(items, jsonvalue.String(t.Text))
		}
	}
	if len(items) == 1 {
		return items[0]
	}
	return jsonvalue.List(items...)
}

func textOf(blocks []eventlog.Block) string {
	var texts []string
	for _, b := range blocks {
		if t, ok := b.(eventlog.Text); ok {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// content writes blocks; what pi has no block for is left out with a warning.
func (r *renderer) content(blocks []eventlog.Block) jsonvalue.Value {
	items := make([]jsonvalue.Value, 0, len(blocks))
	signature := ""
	for _, block := range blocks {
		kind := "text"
		switch b := block.(type) {
		case eventlog.Text:
			items = append(items, jsonvalue.Object(member("type", jsonvalue.String(kind)), member("text", jsonvalue.String(b.Text))))
		case eventlog.Thinking:
			items = append(items, thinkingOf(b))
		case eventlog.ToolCall:
			kind = "toolCall"
			call := jsonvalue.Object(member("type", jsonvalue.String(kind)), member("id", jsonvalue.String(b.CallID)),
				member("name", jsonvalue.String(b.Name)), member("arguments", jsonvalue.Raw(onLine(transcript.WrapArguments(b.Arguments)))))
			call.SetString("thoughtSignature", signature)
			items = append(items, call)
			signature = ""
		case eventlog.Media:
			items = append(items, r.media(b))
		case eventlog.ProviderBlock:
			var ok bool
			if signature, ok = thoughtSignature(b); ok {
				continue
			}
			if b.Provider == Name {
				items = append(items, jsonvalue.Raw(b.JSON))
				continue
			}
			r.warning("a block of %s, of which pi has none, is left out", b.Provider)
		}
	}
	return jsonvalue.List(items...)
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

func (r *renderer) media(m eventlog.Media) jsonvalue.Value {
	if m.Data == "" {
		r.warning("media behind a URI, which pi cannot hold, is named in a text")
		return jsonvalue.Object(member("type", jsonvalue.String("text")), member("text", jsonvalue.String("["+m.MIMEType+" "+m.URI+"]")))
	}
	return jsonvalue.Object(member("type", jsonvalue.String("image")),
		member("data", jsonvalue.String(base64.StdEncoding.EncodeToString([]byte(m.Data)))), member("mimeType", jsonvalue.String(m.MIMEType)))
}

// thinkingOf writes encrypted reasoning as pi does, as the text of OpenAI's item.
func thinkingOf(t eventlog.Thinking) jsonvalue.Value {
	v := jsonvalue.Object(member("type", jsonvalue.String("thinking")), member("thinking", jsonvalue.String(t.Text)))
	switch {
	case t.RedactedData != "":
		v.Set("thinkingSignature", jsonvalue.String(t.RedactedData))
		v.Set("redacted", jsonvalue.Raw("true"))
	case t.EncryptedContent != "":
		id := content.MadeUpReasoningID(t.EncryptedContent)
		if content.IsReasoningID(t.Signature) {
			id = t.Signature
		}
		summary := jsonvalue.List()
		if t.Text != "" {
			summary = jsonvalue.List(jsonvalue.Object(member("type", jsonvalue.String("summary_text")), member("text", jsonvalue.String(t.Text))))
		}
		item := jsonvalue.Object(member("id", jsonvalue.String(id)), member("type", jsonvalue.String("reasoning")),
			member("encrypted_content", jsonvalue.String(t.EncryptedContent)), member("summary", summary))
		v.Set("thinkingSignature", jsonvalue.String(string(item.JSON())))
	case t.Signature != "":
		v.Set("thinkingSignature", jsonvalue.String(t.Signature))
	}
	return v
}
