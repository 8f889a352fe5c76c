package render

import (
	"bytes"
	"encoding/json"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// citing says whether a request's documents have citations, and whether its search results have: the API refuses a
// request in which some of a kind have and others do not. The first of a kind decides, so that no message changes
// because of a later one.
type citing struct{ documents, results decision }

type decision uint8

const (
	undecided decision = iota
	uncited
	cited
)

// of is what is decided for blocks of a type; nil where they have no citations of their own.
func (c *citing) of(kind string) *decision {
	switch kind {
	case "document":
		return &c.documents
	case "search_result":
		return &c.results
	}
	return nil
}

// citable is a block of a request that may have citations, or that contains such blocks.
type citable struct {
	Type      string `json:"type"`
	Citations struct {
		Enabled bool `json:"enabled"`
	} `json:"citations"`
	Content json.RawMessage `json:"content"`
}

// decide records the first choice for each kind in a content, and reports whether all blocks agree with the first.
func (c *citing) decide(content []byte) bool {
	var blocks []json.RawMessage
	if json.Unmarshal(slices.Concat([]byte("["), content, []byte("]")), &blocks) != nil {
		return true
	}
	alike := true
	for _, raw := range blocks {
		var b citable
		if err := json.Unmarshal(raw, &b); err != nil {
			continue // a text, whose citations are a list
		}
		if b.Type == "tool_result" && len(b.Content) > 1 && b.Content[0] == '[' {
			alike = c.decide(b.Content[1:len(b.Content)-1]) && alike
			continue
		}
		decided, has := c.of(b.Type), uncited
		if decided == nil {
			continue
		}
		if b.Citations.Enabled {
			has = cited
		}
		if *decided == undecided {
			*decided = has
		}
		alike = alike && *decided == has
	}
	return alike
}

// settle adds citations to a block or removes them, if its kind is decided.
func (c *content) settle(i int, kind string, block []byte) []byte {
	decided := c.citing.of(kind)
	if decided == nil || *decided == undecided {
		return block
	}
	var b citable
	if json.Unmarshal(block, &b) != nil || b.Citations.Enabled == (*decided == cited) {
		return block
	}
	out := cutMembers(string(block), "citations", false)
	if *decided == cited {
		return append([]byte(out[:len(out)-1]), `,"citations":{"enabled":true}}`...)
	}
	c.converted(i, LeftOut, "citations, as what came before has none")
	return []byte(out)
}

// alikeCited renders again the messages in which a document or search result differs from the first of its kind.
func alikeCited(fragments []Fragment) {
	if !slices.ContainsFunc(fragments, func(f Fragment) bool { return slices.ContainsFunc(f.Blocks, mayCite) }) {
		return
	}
	var c citing
	for i := range fragments {
		f := &fragments[i]
		if !mayBeCitable(f.JSON) || c.decide(f.JSON) {
			continue
		}
		if made := anthropicCited(f.Message, c); len(made) == 1 {
			f.JSON, f.Conversions = made[0].JSON, besides(f.Conversions, made[0].Conversions)
		}
	}
}

// mayBeCitable reports whether a content may have documents or search results, without parsing it.
func mayBeCitable(content []byte) bool {
	return bytes.Contains(content, []byte(`document"`)) || bytes.Contains(content, []byte(`search_result"`)) || bytes.Contains(content, []byte(anyEscape))
}

// mayCite reports whether a block may be one that has citations.
func mayCite(block eventlog.Block) bool {
	switch b := block.(type) {
	case eventlog.ProviderBlock:
		return b.Provider == providerAnthropic && mayName(b.JSON, `"citations"`) && mayName(b.JSON, `"enabled"`)
	case eventlog.ToolResult:
		return slices.ContainsFunc(b.Content, mayCite)
	}
	return false
}
