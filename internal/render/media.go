package render

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// mediaType is what a block of media is, by what it begins with, by what the runtime
// called it, or by how its address ends; empty if nothing says, or if it is not what it is
// called. What an image begins with goes before its name, since providers refuse one under
// a wrong name, and bytes that are none, at every request from then on.
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

// addressed reports whether a URI is an address of one of these schemes, as a provider fetches it: with
// a host, and without what none has. Another is refused, with every request from then on.
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
