package rules

import (
	"encoding/base64"
	"encoding/json"
	"image"
	// The types whose sizes image.DecodeConfig finds.
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"slices"
	"strings"
)

// sources are the ways in which media come, each with the types of media.
type sources map[string][]string

var (
	anthropicImageSources = sources{
		"base64": {"image/jpeg", "image/png", "image/gif", "image/webp"},
		"url":    nil,
		"file":   nil,
	}
	anthropicDocumentSources = sources{
		"base64":  {"application/pdf"},
		"text":    {"text/plain"},
		"url":     nil,
		"file":    nil,
		"content": nil,
	}
)

func (c *anthropicCheck) source(line int, where string, raw json.RawMessage, allowed sources) {
	where += ".source"
	c.media++
	if _, document := allowed["text"]; !document {
		c.images++
	}
	o, ok := c.open(line, where, raw)
	if !ok {
		return
	}
	kind := c.text(line, where, o["type"])
	types, ok := allowed[kind]
	if !ok {
		c.add(line, "source", "%s: type %q", where, kind)
		return
	}
	switch kind {
	case "base64", "text":
		c.members(line, where, o, []string{"type", "media_type", "data"}, nil)
		if name := c.text(line, where, o["media_type"]); !slices.Contains(types, name) {
			c.add(line, "source", "%s: media type %q", where, name)
		}
		data := c.text(line, where, o["data"])
		switch {
		case kind == "base64":
			c.base64(line, where, data)
			if types[0] == "image/jpeg" {
				c.image(line, where, data)
			}
		case blank(data):
			c.add(line, "text", "%s: empty", where)
		}
	case "url":
		c.members(line, where, o, []string{"type", "url"}, nil)
		if url := c.text(line, where, o["url"]); !isAddress(url, "https") {
			c.add(line, "source", "%s: %.40q is no HTTPS address", where, url)
		}
	case "file":
		c.members(line, where, o, []string{"type", "file_id"}, nil)
	case "content":
		c.members(line, where, o, []string{"type", "content"}, nil)
	}
}

// image holds an image to how large it may be, in bytes and in pixels.
func (c *anthropicCheck) image(line int, where, data string) {
	if len(data) > anthropicImage {
		c.add(line, "size", "%s: %d bytes, more than %d", where, len(data), anthropicImage)
	}
	of, _, err := image.DecodeConfig(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
	if err != nil {
		return
	}
	switch side := max(of.Width, of.Height); {
	case side > anthropicSide:
		c.add(line, "size", "%s: %d by %d pixels, more than %d", where, of.Width, of.Height, anthropicSide)
	case side > anthropicManySide:
		c.long = append(c.long, line)
	}
}
