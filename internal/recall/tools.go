// Package recall implements the tools with which a model asks about the log of its own session: what body a pointer
// names, where something is in the log, and what the model saw of a text. Answers are texts for the model. contextd
// writes the first line, which says where the rest is from; the rest is data.
package recall

import (
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
)

// The names of the tools. A session's policy may give the first one a different name.
const (
	Recall    = "recall"
	SearchLog = "search_log"
	Explain   = "explain"
)

const (
	most       = 50 // hits of one search
	usual      = 10 // hits if the model sets no limit
	largestInt = 1<<31 - 1
)

// Tools returns the definitions of the tools; name replaces Recall.
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

// takes are the arguments of each tool.
var takes = map[string][]string{
	Recall:    {"line", "page", "pointer"},
	SearchLog: {"before", "limit", "pattern", "text"},
	Explain:   {"call", "text"},
}

// own reports whether a block is a call of these tools or one of their answers. Searches omit these, because they
// only repeat the log. Other tools may have the same name, or the name that a host of the Model Context Protocol
// makes (mcp__contextd__recall), so own also checks the arguments or the first words.
func (s Session) own(tool string, b eventlog.Block) bool {
	for _, name := range []string{s.Name, Recall, SearchLog, Explain} {
		if tool != name && !(strings.HasSuffix(tool, name) && strings.Contains(tool, "contextd")) {
			continue
		}
		if call, ok := b.(eventlog.ToolCall); ok {
			known, ok := takes[name]
			if !ok {
				known = takes[Recall]
			}
			_, err := parse(tool, call.Arguments, known)
			return err == nil
		}
		const begins = 100 // bytes; a host may write the answer as JSON
		said := text(b)
		return strings.Contains(said[:min(len(said), begins)], "[contextd: ")
	}
	return false
}
