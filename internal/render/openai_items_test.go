package render_test

import (
	"bytes"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// TestOpenAIsOwnItemsOfTheirForm: an item that OpenAI's servers made is sent as the API gave it, with what it left
// empty, and otherwise a text in its place.
func TestOpenAIsOwnItemsOfTheirForm(t *testing.T) {
	f, _ := render.FormatNamed("openai_responses")
	for _, c := range []struct {
		carried bool
		json    string
	}{
		{true, `{"id":"mcp_1","type":"mcp_call","status":"completed","approval_request_id":null,"arguments":"{}","error":null,"name":"n","output":"o","server_label":"s"}`},
		{false, `{"id":"mcp_1","type":"mcp_call","approval_request_id":"mcpr_1","arguments":"{}","name":"n","output":null,"server_label":"s"}`},
		{false, `{"id":"mcp_1","type":"mcp_call","approval_request_id":5,"arguments":"{}","name":"n","server_label":"s"}`},
		{false, `{"id":"mcp_1","type":"mcp_call","arguments":"{}","error":"no","name":"n","server_label":"s"}`},
		{true, `{"id":"mcpl_1","type":"mcp_list_tools","server_label":"s","tools":[{"name":"n","input_schema":{"type":"object"},"annotations":{"read_only":false},"description":"d"},{"name":"m","input_schema":{},"annotations":null,"description":null}],"error":null}`},
		{false, `{"id":"mcpl_1","type":"mcp_list_tools","server_label":"s","tools":[{"name":"n"}]}`},
		{false, `{"id":"mcpl_1","type":"mcp_list_tools","server_label":"s","tools":[{"name":"n","input_schema":{},"more":1}]}`},
		{false, `{"id":"mcpl_1","type":"mcp_list_tools","server_label":"s","tools":null}`},
		{true, `{"id":"ci_1","type":"code_interpreter_call","status":"completed","code":"1","container_id":"c","outputs":[{"type":"logs","logs":"1"},{"type":"image","url":"https://a/b"}]}`},
		{true, `{"id":"ci_1","type":"code_interpreter_call","status":"completed","code":null,"container_id":"c","outputs":null}`},
		{false, `{"id":"ci_1","type":"code_interpreter_call","status":"completed","code":"1","container_id":"c","outputs":[{"type":"files"}]}`},
		{true, `{"id":"fs_1","type":"file_search_call","status":"completed","queries":["q"],"results":[{"file_id":"f","filename":"n","score":0.5,"text":"t","attributes":{"a":1}}]}`},
		{false, `{"id":"fs_1","type":"file_search_call","status":"completed","queries":["q"],"results":[{"file_id":"f","vector_store_id":"v"}]}`},
		{true, `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"q","queries":["q"],"sources":[{"type":"url","url":"https://a/b"}]}}`},
		{false, `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"q","sources":[{"type":"api","name":"n"}]}}`},
		{true, `{"id":"ig_1","type":"image_generation_call","status":"completed","action":"generate","background":"opaque","output_format":"png","quality":"high","result":"iVBORw0KGgo=","revised_prompt":"p","size":"1024x1024"}`},
		{false, `{"id":"ig_1","type":"image_generation_call","status":"completed","background":"none","result":"iVBORw0KGgo="}`},
		{false, `{"id":"ig_1","type":"image_generation_call","status":"failed","result":null}`},
		{true, `{"id":"msg_1","type":"message","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"refusal","refusal":"no"}]}`},
		{true, `{"id":"msg_1","type":"message","role":"assistant","status":"completed","phase":null,"content":[{"type":"refusal","refusal":"no"}]}`},
		{false, `{"id":"msg_1","type":"message","role":"assistant","status":"completed","phase":"opening","content":[{"type":"refusal","refusal":"no"}]}`},
		{false, `{"id":"pg_1","type":"program","call_id":"c","code":"1","fingerprint":"f"}`},
	} {
		lines := linesOf(joined(f, []render.Message{user(text("go")), by("gpt-5", ownBlock("openai", c.json), eventlog.Text{Text: "so"})}))
		for _, v := range rules.Of(f.Name)(lines) {
			t.Errorf("%s: %v", c.json, v)
		}
		if bytes.Contains(bytes.Join(lines, nil), []byte(c.json)) != c.carried {
			t.Errorf("carried is not %v: %s", c.carried, c.json)
		}
	}
}

// TestOpenAIsIDsOnce: what has an id goes out once, in one turn as in several: reasoning is left out where it comes again, and
// other items are described.
func TestOpenAIsIDsOnce(t *testing.T) {
	f, _ := render.FormatNamed("openai_responses")
	thought := eventlog.Thinking{Text: "hm", Signature: "rs_1", EncryptedContent: "seal"}
	refusal := ownBlock("openai", `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"refusal","refusal":"no"}]}`)
	said := by("gpt-5", thought, refusal)
	for name, messages := range map[string][]render.Message{
		"one message":    {user(text("go")), by("gpt-5", thought, refusal, thought, refusal)},
		"joined":         {user(text("go")), said, said},
		"two turns":      {user(text("go")), said, user(text("and?")), said},
		"before a text":  {user(text("go")), said, by("gpt-5", thought, eventlog.Text{Text: "so"})},
		"with its calls": {user(text("go")), by("gpt-5", thought, run("a", `{}`)), result("a", "bash", text("ok")), by("gpt-5", thought, run("b", `{}`)), result("b", "bash", text("ok"))},
	} {
		lines := linesOf(joined(f, messages))
		for _, v := range rules.Of(f.Name)(lines) {
			t.Errorf("%s: %v", name, v)
		}
		if n := bytes.Count(bytes.Join(lines, nil), []byte(`"rs_1"`)); n != 1 {
			t.Errorf("%s: the reasoning is there %d times", name, n)
		}
	}
}
