package render_test

import (
	"bytes"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// TestCitationsOfAllOrNone: of a request's documents all have citations or none, and of its search
// results, as the first of them has.
func TestCitationsOfAllOrNone(t *testing.T) {
	const (
		with    = `,"citations":{"enabled":true}`
		escaped = `,"cit\u0061tions":{"en\u0061bled":true}`
		without = `,"citations":{"enabled":false}`
	)
	document := func(citations string) eventlog.Block {
		return native("anthropic", `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"},"title":"t"`+citations+`}`)
	}
	search := func(citations string) eventlog.Block {
		return native("anthropic", `{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"x"}]`+citations+`}`)
	}
	f, _ := render.FormatNamed("anthropic")
	for _, c := range []struct {
		name               string
		blocks             []eventlog.Block
		documents, results int // how many have citations
	}{
		{"none", []eventlog.Block{document(""), pdf, document(without), search("")}, 0, 0},
		{"all", []eventlog.Block{document(with), document(with), search(with)}, 2, 1},
		{"documents and no results", []eventlog.Block{document(with), search(""), search(without)}, 1, 0},
		{"the first has", []eventlog.Block{document(with), pdf, document(without), document(""), search(with), search("")}, 4, 2},
		{"the first has, written with escapes", []eventlog.Block{document(escaped), pdf, document(without), search("")}, 2, 0}, // and itself
		{"one has, written with escapes", []eventlog.Block{pdf, document(escaped), search(without)}, 0, 0},
		{"the first has none", []eventlog.Block{pdf, document(with), search(without), search(with)}, 0, 0},
	} {
		for split := range len(c.blocks) + 1 {
			messages := []render.Message{user(append([]eventlog.Block{text("go")}, c.blocks[:split]...)...), by(claude, run("a", "{}")), result("a", "find", c.blocks[split:]...)}
			whole := joined(f, messages)
			for _, v := range rules.Of(f.Name)(linesOf(whole)) {
				t.Errorf("%s: %v", c.name, v)
			}
			all := string(bytes.Join(linesOf(whole), nil))
			documents := strings.Count(all, `"title":"t"`+with) + strings.Count(all, `JVBERi0xLjc="}`+with)
			results := strings.Count(all, `"text":"x"}]`+with)
			if documents != c.documents || results != c.results {
				t.Errorf("%s, %d: %d documents and %d results have citations, not %d and %d: %s", c.name, split, documents, results, c.documents, c.results, all)
			}
			for n := range messages {
				for i, m := range joined(f, messages[:n]) {
					if i+1 < n && !bytes.Equal(m.JSON, whole[i].JSON) {
						t.Errorf("%s: message %d changed as the context grew", c.name, i)
					}
				}
			}
		}
	}
}
