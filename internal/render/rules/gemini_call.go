package rules

import (
	"encoding/json"
	"slices"
	"strings"
)

// geminiMIME are the types of media that the models read, but for texts, audio and video.
var geminiMIME = []string{
	"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif",
	"application/pdf", "application/json", "application/rtf", "application/x-javascript", "application/x-python", "application/x-typescript",
}

func (c *geminiCheck) mime(line int, where, name string) {
	if strings.HasPrefix(name, "image/") {
		c.images++
	}
	kind, _, _ := strings.Cut(name, "/")
	if !slices.Contains(geminiMIME, name) && kind != "text" && kind != "audio" && kind != "video" {
		c.add(line, "source", "%s: MIME type %q", where, name)
	}
}

func (c *geminiCheck) call(line int, where string, raw json.RawMessage, t *geminiTurn) {
	o := c.object(line, where, raw, []string{"name", "args"}, []string{"id"})
	id, name := c.names(line, where, o)
	if id != "" {
		if c.ids[id] {
			c.add(line, "id", "%s: %s is used twice", where, id)
		}
		c.ids[id] = true
	}
	if len(o["args"]) == 0 || o["args"][0] != '{' {
		c.add(line, "input", "%s: args are no object", where)
	}
	t.calls = append(t.calls, id+" "+name)
}

func (c *geminiCheck) response(line int, where string, raw json.RawMessage, t *geminiTurn) {
	o := c.object(line, where, raw, []string{"name", "response"}, []string{"id", "parts"})
	id, name := c.names(line, where, o)
	c.open(line, where+".response", o["response"])
	t.answers = append(t.answers, id+" "+name)
}

func (c *geminiCheck) names(line int, where string, o object) (id, name string) {
	name = c.text(line, where, o["name"])
	if !geminiName.MatchString(name) {
		c.add(line, "name", "%s: %q", where, name)
	}
	return c.text(line, where, o["id"]), name
}
