package render

import eventlog "github.com/contextd/contextd/internal/log"

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

// geminiMediaPart is the part of media that Gemini takes, and its type.
func geminiMediaPart(m eventlog.Media, signature string) (part []byte, name string, ok bool) {
	name = mediaType(m)
	if !geminiTypes[name] {
		return nil, "", false
	}
	inner := object{dst: []byte{'{'}}
	inner.always("mimeType", name)
	kind := "inlineData"
	switch {
	case m.Data != "":
		inner.base64("data", m.Data)
	case addressed(m.URI, "https", "gs"):
		kind = "fileData"
		inner.always("fileUri", m.URI)
	default:
		return nil, "", false
	}
	o := object{dst: []byte{'{'}}
	o.name(kind)
	o.dst = append(append(o.dst, inner.dst...), '}')
	o.str("thoughtSignature", signature)
	return append(o.dst, '}'), name, true
}
