package vscode

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// shown appends a reply as the user saw it, for a request that has not ended, or in a version that did not
// keep what the model wrote. Tool calls become custom events, because the file does not have their arguments.
func (r *reader) shown(entry transcript.Entry, rec *request) {
	var text strings.Builder
	pieces := 0
	flush := func() {
		if text.Len() > 0 {
			pieces++
			r.append(entry, fmt.Sprintf("/reply-%d", pieces), &eventlog.Message{
				Role: eventlog.RoleAssistant, Model: rec.model(), Blocks: []eventlog.Block{eventlog.Text{Text: text.String()}},
			})
			text.Reset()
		}
	}
	for i, raw := range rec.Response {
		var part struct {
			Kind  transcript.Word `json:"kind"`
			Value transcript.Word `json:"value"`
			Name  transcript.Word `json:"name"`
		}
		if transcript.Decode(raw, &part) != nil {
			r.out.Skip("response")
			continue
		}
		switch part.Kind {
		case "", "markdownContent":
			text.WriteString(string(part.Value))
		case "inlineReference":
			text.WriteString(string(part.Name))
		case "toolInvocation", "toolInvocationSerialized":
			flush()
			r.session.Keep(transcript.Entry{Line: entry.Line, ID: fmt.Sprintf("%s/invocation-%d", entry.ID, i+1), Time: entry.Time, Native: raw}, "invocation")
		default:
			r.out.Skip("response " + string(part.Kind))
		}
	}
	flush()
}

// result is a tool's result.
type result struct {
	Content []struct {
		Value jsontext.Value `json:"value"`
	} `json:"content"`
}

// blocks returns the texts of a result. Parts that are neither a text nor a tree of texts become provider
// blocks.
func (r *result) blocks() (out []eventlog.Block) {
	for _, part := range r.Content {
		text, ok := transcript.Text(part.Value)
		var tree struct {
			Node *node `json:"node"`
		}
		if !ok && transcript.Decode(part.Value, &tree) == nil && tree.Node != nil {
			var b strings.Builder
			tree.Node.write(&b)
			text, ok = b.String(), true
		}
		if ok && text != "" {
			out = append(out, eventlog.Text{Text: text})
		} else if !ok {
			out = append(out, eventlog.ProviderBlock{Provider: Name, JSON: transcript.Compact(part.Value)})
		}
	}
	return out
}

// failed reports whether a tool failed, which only the text of its result shows.
func failed(blocks []eventlog.Block) bool {
	texts := transcript.Texts(blocks)
	return len(texts) > 0 && strings.HasPrefix(texts[0], "ERROR while calling tool: ")
}

// node is a node in the tree from which a tool composes its result: a text, or further nodes.
type node struct {
	Text     transcript.Word        `json:"text"`
	Break    transcript.Maybe[bool] `json:"lineBreakBefore"`
	Children []node                 `json:"children"`
}

// write appends the texts in the form in which they are sent to the model.
func (n *node) write(b *strings.Builder) {
	if n.Break.Value && b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(string(n.Text))
	for i := range n.Children {
		n.Children[i].write(b)
	}
}
