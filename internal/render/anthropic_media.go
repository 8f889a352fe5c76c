package render

import (
	"encoding/base64"
	"unicode/utf8"

	eventlog "github.com/contextd/contextd/internal/log"
)

// largestAnthropicImage is how long the base64 of an image may be.
const largestAnthropicImage = 5 << 20

var anthropicImages = set("image/png", "image/jpeg", "image/gif", "image/webp")

// anthropicMediaItem carries media as an image or a document, or describes it.
func anthropicMediaItem(c *content, i int, m eventlog.Media) []byte {
	name := mediaType(m)
	kind, source := anthropicSource(m, name)
	if kind == "" {
		return anthropicTextItem(c.describe(i, describeMedia(m)))
	}
	c.renamedMedia(i, m, name)
	o := object{dst: []byte{'{'}}
	o.always("type", kind)
	o.name("source")
	o.dst = append(append(o.dst, source...), '}')
	return c.settle(i, kind, o.dst)
}

// anthropicFits reports whether an image is as small as the API wants it.
func anthropicFits(data string) bool {
	return base64.StdEncoding.EncodedLen(len(data)) <= largestAnthropicImage && longestSide(data) <= longestAnthropicSide
}

// anthropicSource is where an image or a document comes from; no kind if Anthropic does
// not take it.
func anthropicSource(m eventlog.Media, name string) (kind string, source []byte) {
	o := object{dst: []byte{'{'}}
	switch {
	case m.Data == "" && (anthropicImages[name] || name == "application/pdf") && addressed(m.URI, "https"):
		o.always("type", "url")
		o.always("url", m.URI)
	case m.Data == "":
		return "", nil
	case anthropicImages[name] && anthropicFits(m.Data), name == "application/pdf":
		o.always("type", "base64")
		o.always("media_type", name)
		o.base64("data", m.Data)
	case name == "text/plain" && utf8.ValidString(m.Data) && !hollow(m.Data):
		o.always("type", "text")
		o.always("media_type", name)
		o.always("data", m.Data)
	default:
		return "", nil
	}
	kind = "document"
	if anthropicImages[name] {
		kind = "image"
	}
	return kind, append(o.dst, '}')
}
