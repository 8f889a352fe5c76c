package render_test

import (
	"bytes"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// TestNoHalfOfAPairIsSent: half of a surrogate pair, which providers refuse with the whole
// request, is in no line that is sent to one, whichever raw JSON of the log it is in.
func TestNoHalfOfAPairIsSent(t *testing.T) {
	blocks := []eventlog.Block{
		native("anthropic", `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"\ud83d"}}`),
		native("anthropic", `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://x.example","title":"\ude00","encrypted_content":"x"}]}`),
		native("openai", `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"\ud83d"}}`),
		native("openai", `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"\ud83d","annotations":[]}]}`),
		native("openai", `{"type":"output_text","text":"\ud83d","annotations":[]}`),
		native("openai", `{"type":"refusal","refusal":"\ud83d"}`),
		native("gemini", `{"executableCode":{"language":"PYTHON","code":"\ud83d"}}`),
		native("gemini", `{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"\ude00"}}`),
		native("gemini", `{"text":"\ud83d"}`),
		run("a", `{"path":"x.go","content":"\ud83d cut, \ud83d\ude00 whole"}`),
	}
	for _, f := range providerFormats() {
		for _, model := range []string{claude, flash, "gpt-5"} {
			fragments := f.Fragments(user(text("go")))
			fragments = append(fragments, f.Fragments(by(model, blocks...))...)
			fragments = append(fragments, f.Fragments(result("a", "bash", text("done"), native("openai", `{"type":"input_file","filename":"\ud83d","file_data":"data:text/plain;base64,eA=="}`)))...)
			var lines [][]byte
			wholes := 0
			for _, m := range f.Join(fragments) {
				lines = append(lines, m.JSON)
				wholes += bytes.Count(m.JSON, []byte(`\ud83d\ude00`))
			}
			for _, v := range rules.Of(f.Name)(lines) {
				t.Errorf("%s, %s: %s in %s", f.Name, model, v, lines)
			}
			if wholes != 1 {
				t.Errorf("%s, %s: the whole pair is there %d times: %s", f.Name, model, wholes, lines)
			}
		}
	}
}

func TestHalfOfAPairIsReported(t *testing.T) {
	for _, f := range providerFormats() {
		if f.Name != "anthropic" && f.Name != "gemini" {
			continue // arguments are a string there, which has the escape as text
		}
		var reported int
		for _, fragment := range f.Fragments(by(claude, run("a", `{"s":"\ud83d"}`), run("b", `{"s":"\ud83d\ude00"}`))) {
			for _, c := range fragment.Conversions {
				if c.Kind == render.LeftOut && c.Block == 0 {
					reported++
				}
			}
		}
		if reported != 1 {
			t.Errorf("%s: reported %d times", f.Name, reported)
		}
	}
}
