// Package recall is what a model may ask about the log of its own session: the body of a
// pointer, where something is in the log, and what it saw of it. Answers are texts for the
// model. Their first line is contextd's and says where the rest is from; the rest is data.
package recall

import (
	"strings"

	"github.com/contextd/contextd/internal/render"
)

// The tools. The first has another name where the session's policy has one for it.
const (
	Recall    = "recall"
	SearchLog = "search_log"
	Explain   = "explain"
)

const (
	most       = 50 // hits of one search
	usual      = 10 // hits where none are asked for
	largestInt = 1<<31 - 1
)

// Tools are the definitions of the tools, the first under a name of its own.
func Tools(name string) []render.Tool {
	text := func(description string) render.Schema {
		return render.Schema{Type: "string", Description: description}
	}
	number := func(description string, largest int) render.Schema {
		return render.Schema{Type: "integer", Description: description, Minimum: 1, Maximum: largest}
	}
	object := func(properties map[string]render.Schema, required ...string) render.Schema {
		return render.Schema{Type: "object", Properties: properties, Required: required}
	}
	return []render.Tool{
		{
			Name: name,
			Description: "Returns in full what was shortened or left out of this conversation to save space. Parts that were " +
				"replaced carry a pointer such as ctx:12.0. Long bodies come in pages.",
			Schema: object(map[string]render.Schema{
				"pointer": text("The pointer, as it is in the conversation: ctx:12.0"),
				"page":    number("Which page of a long body. Default: the first", largestInt),
				"line":    number("Instead of page: the page that has this line of the body", largestInt),
			}, "pointer"),
		},
		{
			Name: SearchLog,
			Description: "Searches everything that was said, called and returned in this conversation, also what is no longer " +
				"shown, the newest first. Returns pointers with the lines that match. Give text or pattern.",
			Schema: object(map[string]render.Schema{
				"text":    text("The text to look for; upper and lower case are the same"),
				"pattern": text("A regular expression (RE2) to look for in each line, such as func \\w+Handler"),
				"before":  number("Only events before this number, to go on from an earlier search", largestInt),
				"limit":   {Type: "integer", Description: "How many places at most. Default: 10", Minimum: 1, Maximum: most},
			}),
		},
		{
			Name: Explain,
			Description: "Says whether a text, or what a pointer names, was in the context of the newest model call, and if " +
				"not, why: evicted, clipped, summarised or not there yet.",
			Schema: object(map[string]render.Schema{
				"text": text("The exact text, or a pointer such as ctx:12.0"),
				"call": number("Which model call, counted from 1. Default: the newest", largestInt),
			}, "text"),
		},
	}
}

// own reports whether a tool is one of these, as the model calls it or as a host of the
// Model Context Protocol names it: mcp__contextd__recall. Their calls and results repeat what
// is in the log, so a search leaves them out.
func (s Session) own(tool string) bool {
	for _, name := range []string{s.Name, Recall, SearchLog, Explain} {
		if tool == name || strings.HasSuffix(tool, name) && strings.Contains(tool, "contextd") {
			return true
		}
	}
	return false
}
