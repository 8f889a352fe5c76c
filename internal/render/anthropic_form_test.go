package render_test

import (
	"bytes"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// TestAnthropicsOwnBlocksOfTheirForm: a block of Anthropic's is sent as it came where the API
// takes it, and otherwise a text in its place.
func TestAnthropicsOwnBlocksOfTheirForm(t *testing.T) {
	const search = `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`
	use := func(name string) string {
		return `{"type":"server_tool_use","id":"srvtoolu_1","name":"` + name + `","input":{}}`
	}
	gave := func(tool, content string) string {
		return `{"type":"` + tool + `_tool_result","tool_use_id":"srvtoolu_1","content":` + content + `}`
	}
	for _, c := range []struct {
		name    string
		carried bool
		blocks  []string
	}{
		{"text", true, []string{`{"type":"text","text":"x","citations":null}`}},
		{"another letter case", false, []string{`{"TYPE":"text","text":"x"}`}},
		{"a member in another letter case too", false, []string{`{"type":"text","text":" ","Text":"x"}`}},
		{"a member that is unknown", false, []string{`{"type":"text","text":"x","index":0}`}},
		{"a member twice", false, []string{`{"type":"text","text":"x","text":"x"}`}},
		{"a citation", true, []string{`{"type":"text","text":"x","citations":[{"type":"web_search_result_location","cited_text":"c","encrypted_index":"e","title":null,"url":"https://x.org"}]}`}},
		{"a citation as answers have it", false, []string{`{"type":"text","text":"x","citations":[{"type":"char_location","cited_text":"c","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1,"file_id":null}]}`}},
		{"citations that are no list", false, []string{`{"type":"text","text":"x","citations":{"enabled":true}}`}},
		{"a search", true, []string{use("web_search"), search}},
		{"a search and its caller", true, []string{strings.Replace(use("web_search"), `"input"`, `"caller":{"type":"direct"},"input"`, 1), search}},
		{"a search with an error", true, []string{use("web_search"), strings.Replace(search, "[]", `{"type":"web_search_tool_result_error","error_code":"unavailable"}`, 1)}},
		{"what a search found", true, []string{use("web_search"), gave("web_search", `[{"type":"web_search_result","url":"https://x.org","title":"t","encrypted_content":"e","page_age":null}]`)}},
		{"what a search found, without its seal", false, []string{use("web_search"), gave("web_search", `[{"type":"web_search_result","url":"https://x.org","title":"t"}]`)}},
		{"what a search found, in no list", false, []string{use("web_search"), gave("web_search", `{"type":"web_search_result","url":"https://x.org","title":"t","encrypted_content":"e"}`)}},
		{"a page", true, []string{use("web_fetch"), gave("web_fetch", `{"type":"web_fetch_result","url":"https://x.org","retrieved_at":null,"content":{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"},"title":null,"citations":null}}`)}},
		{"a page without its text", false, []string{use("web_fetch"), gave("web_fetch", `{"type":"web_fetch_result","url":"https://x.org"}`)}},
		{"a page that is a list", false, []string{use("web_fetch"), gave("web_fetch", `[]`)}},
		{"tools", true, []string{use("tool_search_tool_bm25"), gave("tool_search", `{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"t"}]}`)}},
		{"tools without names", false, []string{use("tool_search_tool_bm25"), gave("tool_search", `{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference"}]}`)}},
		{"code", true, []string{use("bash_code_execution"), gave("bash_code_execution", `{"type":"bash_code_execution_result","stdout":"o","stderr":"","return_code":-1,"content":[{"type":"bash_code_execution_output","file_id":"f"}]}`)}},
		{"code whose output is sealed", true, []string{use("code_execution"), gave("code_execution", `{"type":"encrypted_code_execution_result","encrypted_stdout":"o","stderr":"","return_code":0,"content":[]}`)}},
		{"code without an exit code", false, []string{use("code_execution"), gave("code_execution", `{"type":"code_execution_result","stdout":"o","stderr":"","content":[]}`)}},
		{"an edit", true, []string{use("text_editor_code_execution"), gave("text_editor_code_execution", `{"type":"text_editor_code_execution_str_replace_result","lines":null,"old_start":1}`)}},
		{"a result of nothing", false, []string{use("code_execution"), gave("code_execution", `{}`)}},
		{"an error of another tool", false, []string{use("code_execution"), gave("code_execution", `{"type":"bash_code_execution_tool_result_error","error_code":"unavailable"}`)}},
		{"a citation of other types", false, []string{`{"type":"text","text":"x","citations":[{"type":"char_location","cited_text":"c","document_index":"0","document_title":null,"start_char_index":0,"end_char_index":1}]}`}},
		{"a citation of no text", false, []string{`{"type":"text","text":"x","citations":[{"type":"char_location","cited_text":null,"document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1}]}`}},
		{"the result of another tool", false, []string{use("web_fetch"), search}},
		{"a result of a type that is not carried", false, []string{use("advisor"), `{"type":"advisor_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"advisor_result","text":"t"}}`}},
		{"a use with a dash in its id", false, []string{strings.Replace(use("web_search"), "srvtoolu_1", "srvtoolu_a-1", 1), strings.Replace(search, "srvtoolu_1", "srvtoolu_a-1", 1)}},
		{"a use with an id that is only its prefix", false, []string{strings.Replace(use("web_search"), "srvtoolu_1", "srvtoolu_", 1), strings.Replace(search, "srvtoolu_1", "srvtoolu_", 1)}},
		{"a use without input", false, []string{`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search"}`, search}},
		{"a use whose input is no object", false, []string{strings.Replace(use("web_search"), "{}", "[]", 1), search}},
		{"a result without content", false, []string{use("web_search"), `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1"}`}},
		{"a server's result for an MCP server's tool", false, []string{`{"type":"mcp_tool_use","id":"mcptoolu_1","name":"n","server_name":"s","input":{}}`, strings.Replace(search, "srvtoolu_1", "mcptoolu_1", 1)}},
		{"an MCP server's tool", true, []string{`{"type":"mcp_tool_use","id":"mcptoolu_1","name":"n","server_name":"s","input":{}}`, `{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","is_error":false,"content":[{"type":"text","text":"x"}]}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var blocks []eventlog.Block
			for _, json := range c.blocks {
				blocks = append(blocks, native("anthropic", json))
			}
			holdAnthropic(t, c.carried, c.blocks, user(text("go")), by(claude, append(blocks, text("so"))...))
		})
	}
}

// TestAnthropicsOwnInput: the same for what a user or a tool shows.
func TestAnthropicsOwnInput(t *testing.T) {
	source := func(kind, source string) string { return `{"type":"` + kind + `","source":` + source + `}` }
	for _, c := range []struct {
		name    string
		carried bool
		json    string
	}{
		{"an image by its address", true, source("image", `{"type":"url","url":"https://x.org/a.png"}`)},
		{"an image by no address", false, source("image", `{"type":"url","url":"nope"}`)},
		{"an image from nowhere", false, source("image", `{"type":"bogus"}`)},
		{"an image of text", false, source("image", `{"type":"text","media_type":"text/plain","data":"x"}`)},
		{"an image that is a PDF", false, source("image", `{"type":"base64","media_type":"application/pdf","data":"JVBERi0x"}`)},
		{"a PDF", true, source("document", `{"type":"base64","media_type":"application/pdf","data":"JVBERi0x"}`)},
		{"a document that is an image", false, source("document", `{"type":"base64","media_type":"image/gif","data":"R0lGODlh"}`)},
		{"a text", true, source("document", `{"type":"text","media_type":"text/plain","data":"x"}`)},
		{"a text that says nothing", false, source("document", `{"type":"text","media_type":"text/plain","data":""}`)},
		{"a file", true, source("document", `{"type":"file","file_id":"file_1"}`)},
		{"a title that is no text", false, `{"type":"document","source":{"type":"file","file_id":"f"},"title":5}`},
		{"no title", true, `{"type":"document","source":{"type":"file","file_id":"f"},"title":null,"context":"c"}`},
		{"a file without its id", false, source("document", `{"type":"file"}`)},
		{"blocks", true, source("document", `{"type":"content","content":[{"type":"text","text":"x"}]}`)},
		{"blocks that say nothing", false, source("document", `{"type":"content","content":[{"type":"text","text":" "}]}`)},
		{"an image without a source", false, `{"type":"image"}`},
		{"a search result", true, `{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"x"}],"citations":{"enabled":true}}`},
		{"a search result of nothing", false, `{"type":"search_result"}`},
		{"a search result without a title", false, `{"type":"search_result","source":"s","title":"","content":[]}`},
		{"a search result with an image", false, `{"type":"search_result","source":"s","title":"t","content":[{"type":"image"}]}`},
		{"a tool without a name", false, `{"type":"tool_reference","tool_name":""}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			holdAnthropic(t, c.carried, []string{c.json}, user(text("go")), by(claude, run("a", `{}`)), result("a", "bash", text("ok"), native("anthropic", c.json)))
		})
	}
}

// holdAnthropic holds what messages become to the API's rules, and to whether blocks are in it
// as they came.
func holdAnthropic(t *testing.T, carried bool, blocks []string, messages ...render.Message) {
	t.Helper()
	f, _ := render.FormatNamed("anthropic")
	lines := linesOf(joined(f, messages))
	for _, v := range rules.Of(f.Name)(lines) {
		t.Errorf("%v", v)
	}
	all := bytes.Join(lines, []byte("\n"))
	for _, block := range blocks {
		if bytes.Contains(all, []byte(block)) != carried {
			t.Errorf("carried is not %v: %s in\n%s", carried, block, all)
		}
	}
}

// TestMarksOfTheLogAreNotSent: a request has at most four marks for the cache, and the context
// says where they pay. The log's own are of requests that were before.
func TestMarksOfTheLogAreNotSent(t *testing.T) {
	const mark = `"cache_control":{"type":"ephemeral"}`
	var blocks []eventlog.Block
	for _, json := range []string{
		`{"type":"image","source":{"type":"url","url":"https://x.org/a.png"},` + mark + `}`,
		`{` + mark + `,"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"x",` + mark + `},{"type":"text","text":"y"}]}`,
		`{"type":"document","source":{"type":"content","content":[{"type":"text","text":"z",` + mark + `}]},"\u0063ache_control":null}`,
	} {
		blocks = append(blocks, native("anthropic", json))
	}
	uses := by(claude,
		native("anthropic", `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"cache_control":1},`+mark+`}`),
		native("anthropic", `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[],`+mark+`}`), text("so"))
	f, _ := render.FormatNamed("anthropic")
	lines := linesOf(joined(f, []render.Message{user(blocks...), uses}))
	want := `{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x.org/a.png"}},` +
		`{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]},` +
		`{"type":"document","source":{"type":"content","content":[{"type":"text","text":"z"}]}}]}` + "\n" +
		`{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"cache_control":1}},` +
		`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},{"type":"text","text":"so"}]}`
	if got := string(bytes.Join(lines, []byte("\n"))); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
