package render

import (
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"

	eventlog "github.com/contextd/contextd/internal/log"
)

// largestAnthropicImage is how long the base64 of an image may be.
const largestAnthropicImage = 5 << 20

var anthropicImages = set("image/png", "image/jpeg", "image/gif", "image/webp")

// anthropicMediaItem carries media as an image or a document, or describes it.
func anthropicMediaItem(c *content, i int, m eventlog.Media) []byte {
	name := mediaType(m)
	kind := anthropicKind(m, name)
	if kind == "" {
		return anthropicTextItem(c.describe(i, describeMedia(m)))
	}
	c.renamedMedia(i, m, name)
	o := object{dst: []byte{'{'}}
	o.always("type", kind)
	o.name("source")
	o.dst = append(append(o.dst, anthropicSource(m, name)...), '}')
	return c.settle(i, kind, o.dst)
}

// anthropicFits reports whether an image is within the API's limits on bytes and pixels.
func anthropicFits(data string) bool {
	return base64.StdEncoding.EncodedLen(len(data)) <= largestAnthropicImage && longestSide(data) <= longestAnthropicSide
}

// anthropicKind is the type of block in which Anthropic takes media of a type; empty if it does not.
func anthropicKind(m eventlog.Media, name string) string {
	switch image := anthropicImages[name]; {
	case m.Data == "" && !((image || name == "application/pdf") && addressed(m.URI, "https")):
		return ""
	case image && (m.Data == "" || anthropicFits(m.Data)):
		return "image"
	case name == "application/pdf", name == "text/plain" && utf8.ValidString(m.Data) && !hollow(m.Data):
		return "document"
	}
	return ""
}

// anthropicSource is where an image or a document comes from.
func anthropicSource(m eventlog.Media, name string) []byte {
	o := object{dst: []byte{'{'}}
	switch {
	case m.Data == "":
		o.always("type", "url")
		o.always("url", m.URI)
	case name == "text/plain":
		o.always("type", "text")
		o.always("media_type", name)
		o.always("data", m.Data)
	default:
		o.always("type", "base64")
		o.always("media_type", name)
		o.base64("data", m.Data)
	}
	return append(o.dst, '}')
}

// anthropicLimits are those of a model with a window of 200,000 tokens. bytes counts a megabyte as 10^6, which leaves
// room for the rest of the request.
var anthropicLimits = mediaLimits{most: 100, bytes: 32_000_000, few: 20, side: 2000, carries: anthropicCarries}

func anthropicCarries(at mediaPlace, block eventlog.Block) (medium, bool) {
	if at.role == eventlog.RoleSystem || at.role == eventlog.RoleAssistant || at.failed {
		return medium{}, false
	}
	switch b := block.(type) {
	case eventlog.Media:
		return mediumOf(b), anthropicKind(b, mediaType(b)) != ""
	case eventlog.ProviderBlock:
		kind := readAnthropic(b.JSON).Type
		if b.Provider != providerAnthropic || kind != "image" && kind != "document" || !anthropicSound(kind, b.JSON) {
			return medium{}, false
		}
		found := medium{bytes: len(b.JSON), image: kind == "image"}
		var of struct {
			Source struct {
				Data []byte `json:"data"`
			} `json:"source"`
		}
		if found.image && json.Unmarshal([]byte(b.JSON), &of) == nil {
			found.side = longestSide(string(of.Source.Data))
		}
		return found, true
	}
	return medium{}, false
}
