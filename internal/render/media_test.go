package render_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
)

// TestMediaThatIsNone: bytes that are not what they are called go to no provider, which
// would refuse every request with them. A text says what they were and where they are, in
// messages and in results, and the conversion is reported.
func TestMediaThatIsNone(t *testing.T) {
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	native := func(provider, form, mime, data string) eventlog.Block {
		return ownBlock(provider, fmt.Sprintf(form, mime, data))
	}
	const (
		image    = `{"type":"image","source":{"type":"base64","media_type":%q,"data":%q}}`
		document = `{"type":"document","title":"t","source":{"type":"base64","media_type":%q,"data":%q}}`
		url      = `{"type":"image_url","image_url":{"url":"data:%s;base64,%s"}}`
		input    = `{"type":"input_image","image_url":"data:%s;base64,%s"}`
		inline   = `{"inlineData":{"mimeType":%q,"data":%q}}`
	)
	broken := map[string]eventlog.Block{
		"no image":          eventlog.Media{MIMEType: "image/png", Data: "<html>not found</html>"},
		"a cut signature":   eventlog.Media{MIMEType: "image/png", Data: "\x89PNG\r\n\x1a"},
		"no jpeg":           eventlog.Media{MIMEType: "image/jpg", Data: "JFIF"},
		"no gif":            eventlog.Media{MIMEType: "image/gif; q=1", Data: "GIF"},
		"no webp":           eventlog.Media{MIMEType: "IMAGE/WEBP", Data: "RIFF1234WAVE"},
		"no pdf":            eventlog.Media{MIMEType: "application/pdf", Data: "%PD"},
		"nothing":           eventlog.Media{MIMEType: "image/png"},
		"no host":           eventlog.Media{MIMEType: "image/png", URI: "https:///a.png"},
		"a blank":           eventlog.Media{MIMEType: "image/png", URI: "https://example.org/a b.png"},
		"a new line":        eventlog.Media{MIMEType: "image/png", URI: "https://example.org/a.png\n"},
		"a quote":           eventlog.Media{MIMEType: "image/png", URI: "https://example.org/\"a.png"},
		"no port":           eventlog.Media{MIMEType: "image/png", URI: "https://example.org:port/a.png"},
		"no escape":         eventlog.Media{MIMEType: "image/png", URI: "https://example.org/%zz.png"},
		"openai, no url":    ownBlock("openai", `{"type":"image_url","image_url":{"url":"https://example.org/a b.png"}}`),
		"anthropic, broken": native("anthropic", image, "image/png", "iVBORw0KGgo"),
		"anthropic, empty":  native("anthropic", image, "image/png", ""),
		"anthropic, other":  native("anthropic", image, "image/png", encode("<html>")),
		"anthropic, lines":  native("anthropic", image, "image/png", "iVBORw\n0KGgo="),
		"anthropic, pdf":    native("anthropic", document, "application/pdf", encode("PDF")),
		"openai, broken":    native("openai", url, "image/png", "!!!!"),
		"openai, empty":     native("openai", url, "image/png", ""),
		"openai, other":     native("openai", input, "image/png", encode("text")),
		"google, broken":    native("google", inline, "image/png", "!!!!"),
		"google, other":     native("google", inline, "image/png", encode("text")),
	}
	sound := map[string]eventlog.Block{
		"anthropic": native("anthropic", image, "image/png", encode("\x89PNG\r\n\x1a\n")),
		"openai":    native("openai", url, "image/png", encode("\x89PNG\r\n\x1a\n")),
		"google":    native("google", inline, "image/png", encode("\x89PNG\r\n\x1a\n")),
	}
	for _, format := range render.Formats()[1:] {
		of := func(block eventlog.Block) (string, []render.Conversion) {
			talk := openAITalk(say(eventlog.RoleUser, block), modelSaid("m", makes("c1", "shot", "{}")), answers("c1", block))
			json, conversions := "", []render.Conversion(nil)
			for _, e := range rendered(format, talk) {
				json, conversions = json+string(e.JSON)+"\n", append(conversions, e.Conversions...)
			}
			return json, conversions
		}
		for name, block := range broken {
			json, conversions := of(block)
			for _, carried := range []string{`:"image"`, `:"document"`, `"image_url":`, `:"input_image"`, `:"input_file"`, `"inlineData":`, `"fileData":`, `"data":`, `base64,`} {
				if strings.Contains(json, carried) {
					t.Errorf("%s, %s: %s is in\n%s", format.Name, name, carried, json)
				}
			}
			if !strings.Contains(json, "; ctx:1.0]") || !strings.Contains(json, "; ctx:3.0]") || len(conversions) < 2 {
				t.Errorf("%s, %s: no pointers, or not told: %v\n%s", format.Name, name, conversions, json)
			}
		}
		own := map[string]string{"anthropic": "anthropic", "openai_chat": "openai", "openai_responses": "openai", "gemini": "google"}[format.Name]
		if json, _ := of(sound[own]); strings.Contains(json[:strings.IndexByte(json, '\n')], "; ctx:") {
			t.Errorf("%s: what is sound is not carried:\n%s", format.Name, json)
		}
	}
}
