package render

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// members reads a JSON object whose members are all known, none of them twice. What has
// others is of a form that nobody here can vouch for.
func members(raw string, required, optional []string) (map[string]json.RawMessage, bool) {
	if !eventlog.IsJSONObject(raw) {
		return nil, false
	}
	bytes := []byte(raw)
	out := make(map[string]json.RawMessage, len(required))
	for i := strings.IndexByte(raw, '{') + 1; ; {
		i += len(raw[i:]) - len(strings.TrimLeft(raw[i:], ","+jsonSpace))
		if raw[i] == '}' {
			break
		}
		named := stringEnd(raw, i)
		value, _ := memberValue(raw, named)
		end := valueEnd(raw, value)
		name := memberName(raw[i:named])
		if _, twice := out[name]; twice || !slices.Contains(required, name) && !slices.Contains(optional, name) {
			return nil, false
		}
		out[name], i = bytes[value:end:end], end
	}
	for _, name := range required {
		if _, ok := out[name]; !ok {
			return nil, false
		}
	}
	return out, true
}

// textIn is the string that a JSON text is; "" if it is none.
func textIn(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// openAIOwnImage is an image in the content of either API.
type openAIOwnImage struct{ url, detail string }

// readOpenAIImage reads an image part of Chat Completions or of Responses.
func readOpenAIImage(raw string) (image openAIOwnImage, ok bool) {
	if m, ok := members(raw, []string{"type", "image_url"}, []string{"detail"}); ok {
		image = openAIOwnImage{textIn(m["image_url"]), textIn(m["detail"])}
		switch textIn(m["type"]) {
		case "image_url":
			inner, ok := members(string(m["image_url"]), []string{"url"}, []string{"detail"})
			if _, outside := m["detail"]; !ok || outside {
				return image, false
			}
			image = openAIOwnImage{textIn(inner["url"]), textIn(inner["detail"])}
			if _, said := inner["detail"]; said && image.detail == "" {
				return image, false
			}
		case "input_image":
			if _, said := m["detail"]; said && image.detail == "" {
				return image, false
			}
		default:
			return image, false
		}
		return image, image.valid()
	}
	return openAIOwnImage{}, false
}

func (i openAIOwnImage) valid() bool {
	return openAIDetail(i.detail) && (onTheWeb(i.url) || dataURL(i.url, func(mime string) bool { return openAIImages[mime] }))
}

func openAIDetail(detail string) bool {
	return detail == "" || slices.Contains([]string{"auto", "low", "high", "original"}, detail)
}

// dataURL reports whether a URL holds data of a type that is taken.
func dataURL(url string, taken func(mime string) bool) bool {
	rest, ok := strings.CutPrefix(url, "data:")
	mime, data, found := strings.Cut(rest, ";base64,")
	return ok && found && taken(mime) && soundData(mime, data)
}

func isBase64(data string) bool {
	// Line ends, which the decoder skips, are not for every reader.
	if data == "" || strings.ContainsAny(data, "\r\n") {
		return false
	}
	_, err := base64.StdEncoding.DecodeString(data)
	return err == nil
}

// chatPart appends a part of a user message that came from OpenAI: as it came if it is
// one of Chat Completions, an image of Responses as the image it is.
func chatPart(dst []byte, raw string) ([]byte, bool) {
	if image, ok := readOpenAIImage(raw); ok {
		o := object{dst: append(dst, `{"type":"image_url","image_url":{`...)}
		o.always("url", image.url)
		o.str("detail", image.detail)
		return append(o.dst, '}', '}'), true
	}
	if m, ok := members(raw, []string{"type", "input_audio"}, nil); ok && textIn(m["type"]) == "input_audio" {
		audio, ok := members(string(m["input_audio"]), []string{"data", "format"}, nil)
		format := textIn(audio["format"])
		if ok && (format == "wav" || format == "mp3") && isBase64(textIn(audio["data"])) {
			return appendNative(dst, raw), true
		}
	}
	if file, ok := readChatFile(raw); ok {
		data := textIn(file["file_data"])
		if data == "" || dataURL(data, func(mime string) bool { return mime == "application/pdf" }) {
			return appendNative(dst, raw), true
		}
	}
	return dst, false
}

// readChatFile reads a file part of Chat Completions by its members.
func readChatFile(raw string) (map[string]json.RawMessage, bool) {
	m, ok := members(raw, []string{"type", "file"}, nil)
	if !ok || textIn(m["type"]) != "file" {
		return nil, false
	}
	file, ok := members(string(m["file"]), nil, []string{"file_id", "filename", "file_data"})
	if !ok || !texts(file) {
		return nil, false
	}
	id, data := textIn(file["file_id"]), textIn(file["file_data"])
	if id != "" && data == "" || id == "" && dataURL(data, func(string) bool { return true }) && textIn(file["filename"]) != "" {
		return file, true
	}
	return nil, false
}

// texts reports whether all members are strings that are not empty.
func texts(m map[string]json.RawMessage) bool {
	for _, v := range m {
		if textIn(v) == "" {
			return false
		}
	}
	return true
}

// responsesPart appends a part of a content list of Responses that came from OpenAI.
func responsesPart(dst []byte, raw string) ([]byte, bool) {
	if image, ok := readOpenAIImage(raw); ok {
		return responsesImage(dst, "image_url", appendString(nil, image.url), image.detail), true
	}
	if m, ok := members(raw, []string{"type", "file_id"}, []string{"detail"}); ok &&
		textIn(m["type"]) == "input_image" && texts(m) && openAIDetail(textIn(m["detail"])) {
		id, _ := wholePairs(string(m["file_id"]))
		return responsesImage(dst, "file_id", []byte(id), textIn(m["detail"])), true
	}
	if m, ok := members(raw, []string{"type"}, []string{"file_id", "file_url", "filename", "file_data"}); ok &&
		textIn(m["type"]) == "input_file" && texts(m) {
		data := textIn(m["file_data"])
		if m["file_id"] != nil || onTheWeb(textIn(m["file_url"])) || dataURL(data, func(string) bool { return true }) && m["filename"] != nil {
			return appendNative(dst, raw), true
		}
	}
	if file, ok := readChatFile(raw); ok {
		o := object{dst: append(dst, '{')}
		o.always("type", "input_file")
		for _, name := range []string{"file_id", "filename", "file_data"} {
			whole, _ := wholePairs(string(file[name]))
			o.raw(name, whole)
		}
		return append(o.dst, '}'), true
	}
	return dst, false
}

// responsesImage appends an image by its URL or its id, a JSON string.
func responsesImage(dst []byte, by string, named []byte, detail string) []byte {
	if detail == "" {
		detail = "auto"
	}
	o := object{dst: append(dst, '{')}
	o.always("type", "input_image")
	o.name(by)
	o.dst = append(o.dst, named...)
	o.always("detail", detail)
	return append(o.dst, '}')
}

// openAIRefusal reads a refusal, which the APIs have as a part of what the model said.
func openAIRefusal(provider, raw string) (string, bool) {
	m, ok := members(raw, []string{"type", "refusal"}, nil)
	text := textIn(m["refusal"])
	return text, ok && provider == providerOpenAI && textIn(m["type"]) == "refusal" && !hollow(text)
}

// The limits of OpenAI's two APIs, which take different media: so many images, and of the smaller
// of the two megabytes.
var (
	chatLimits      = openAILimits(chatMedia, chatPart)
	responsesLimits = openAILimits(responsesMedia, responsesPart)
)

func openAILimits(media func([]byte, eventlog.Media) ([]byte, bool), native func([]byte, string) ([]byte, bool)) mediaLimits {
	return mediaLimits{most: 1500, images: true, bytes: 50_000_000, carries: func(at mediaPlace, block eventlog.Block) (medium, bool) {
		if at.role == eventlog.RoleSystem || at.role == eventlog.RoleAssistant {
			return medium{}, false
		}
		switch b := block.(type) {
		case eventlog.Media:
			found := mediumOf(b)
			b.Data = b.Data[:min(len(b.Data), imageHeader)] // what it is, it is by its beginning
			_, ok := media(nil, b)
			return found, ok
		case eventlog.ProviderBlock:
			if b.Provider != providerOpenAI {
				return medium{}, false
			}
			_, ok := native(nil, b.JSON)
			return medium{bytes: len(b.JSON), image: strings.Contains(b.JSON, `"image_url"`) || strings.Contains(b.JSON, `"input_image"`)}, ok
		}
		return medium{}, false
	}}
}
