package render

import (
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// geminiTypes are the kinds of media that Gemini reads.
var geminiTypes = set(
	"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif",
	"audio/wav", "audio/mp3", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac",
	"video/mp4", "video/mpeg", "video/mov", "video/quicktime", "video/avi", "video/x-flv", "video/mpg", "video/webm",
	"video/wmv", "video/3gpp",
	"application/pdf", "text/plain", "text/html", "text/css", "text/csv", "text/xml", "text/markdown", "text/rtf",
)

// geminiMedia carries media as a part, or describes it.
func geminiMedia(c *content, i int, m eventlog.Media, signature string) []byte {
	part, name, ok := geminiMediaPart(m, signature)
	if !ok {
		return geminiText(c.describe(i, describeMedia(m)), signature)
	}
	c.renamedMedia(i, m, name)
	return part
}

func geminiTakes(m eventlog.Media, name string) bool {
	kind, _, _ := strings.Cut(name, "/")
	return (geminiTypes[name] || kind == "audio" || kind == "video") && (m.Data != "" || addressed(m.URI, "https", "gs"))
}

// geminiMediaPart is the part of media that Gemini takes, and its type.
func geminiMediaPart(m eventlog.Media, signature string) (part []byte, name string, ok bool) {
	name = mediaType(m)
	if !geminiTakes(m, name) {
		return nil, "", false
	}
	inner := object{dst: []byte{'{'}}
	inner.always("mimeType", name)
	kind := "inlineData"
	if m.Data != "" {
		inner.base64("data", m.Data)
	} else {
		kind = "fileData"
		inner.always("fileUri", m.URI)
	}
	o := object{dst: []byte{'{'}}
	o.name(kind)
	o.dst = append(append(o.dst, inner.dst...), '}')
	o.str("thoughtSignature", signature)
	return append(o.dst, '}'), name, true
}

// geminiLimits count a megabyte as 10^6 bytes, which leaves room for the rest of the request.
var geminiLimits = mediaLimits{most: 3600, images: true, bytes: 20_000_000, carries: geminiCarries}

func geminiCarries(at mediaPlace, block eventlog.Block) (medium, bool) {
	if at.role == eventlog.RoleSystem {
		return medium{}, false
	}
	switch b := block.(type) {
	case eventlog.Media:
		return mediumOf(b), geminiTakes(b, mediaType(b))
	case eventlog.ProviderBlock:
		if at.result || !mayName(b.JSON, `"inlineData"`) && !mayName(b.JSON, `"fileData"`) {
			return medium{}, false
		}
		speaker := speakerUser
		if at.role == eventlog.RoleAssistant {
			speaker = speakerModel
		}
		_, ok := geminiNative(b, speaker)
		return medium{bytes: len(b.JSON), image: true}, ok
	}
	return medium{}, false
}
