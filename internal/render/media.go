package render

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// mediaType is the type of a block of media: by its first bytes, by the runtime's name for it, or by the end of its
// address; empty if unknown or if the name is wrong. For images the bytes decide, because providers refuse an image
// under a wrong name, and bytes that are no image, and every later request with it.
func mediaType(m eventlog.Media) string {
	for _, magic := range magics {
		if strings.HasPrefix(m.Data, magic.begins) {
			return magic.name
		}
	}
	if strings.HasPrefix(m.Data, "RIFF") && len(m.Data) >= 12 && m.Data[8:12] == "WEBP" {
		return "image/webp"
	}
	name, _, _ := strings.Cut(m.MIMEType, ";")
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "image/jpg" {
		name = "image/jpeg"
	}
	if name == "" && m.Data == "" {
		path, _, _ := strings.Cut(strings.ToLower(m.URI), "?")
		path, _, _ = strings.Cut(path, "#")
		name = extensions[path[strings.LastIndexByte(path, '.')+1:]]
	}
	if m.Data != "" && begun[name] {
		return ""
	}
	return name
}

// addressed reports whether a URI is one that a provider can fetch: of one of these schemes, with a host. The provider
// refuses any other, and every later request with it.
func addressed(uri string, schemes ...string) bool {
	u, err := url.Parse(uri)
	return err == nil && u.Host != "" && slices.ContainsFunc(schemes, func(scheme string) bool { return strings.HasPrefix(uri, scheme+"://") }) &&
		!strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || strings.ContainsRune("\"<>\\^`{|}\x7f", r) })
}

// begun are the types that are known by what they begin with.
var begun = set("image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")

// soundData reports whether base64 holds media of the type.
func soundData(mime, data string) bool {
	if !isBase64(data) {
		return false
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	return err == nil && mediaType(eventlog.Media{MIMEType: mime, Data: string(raw)}) == strings.ToLower(mime)
}

var magics = []struct{ begins, name string }{
	{"\x89PNG\r\n\x1a\n", "image/png"},
	{"\xff\xd8\xff", "image/jpeg"},
	{"GIF87a", "image/gif"},
	{"GIF89a", "image/gif"},
	{"%PDF-", "application/pdf"},
}

var extensions = map[string]string{
	"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp",
	"pdf": "application/pdf",
}

// renamedMedia says that media goes out under another type than the runtime's, if it
// does.
func (c *content) renamedMedia(i int, m eventlog.Media, name string) {
	if given := strings.ToLower(m.MIMEType); given != "" && given != name && given != "image/jpg" && !strings.HasPrefix(given, name+";") {
		c.converted(i, Renamed, brief(m.MIMEType)+" is "+name)
	}
}

// describeMedia says what media is.
func describeMedia(m eventlog.Media) string {
	name := brief(m.MIMEType)
	if name == "" {
		name = "media"
	}
	switch {
	case m.Data == "" && m.URI == "":
		return name + " without data"
	case m.Data == "":
		return name + " by reference"
	case mediaType(m) == "" && m.MIMEType != "":
		return fmt.Sprintf("not a valid %s, %d bytes", name, len(m.Data))
	}
	return fmt.Sprintf("%s, %d bytes", name, len(m.Data))
}
