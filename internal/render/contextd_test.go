package render_test

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// messages show every member of the format, there and left out.
var messages = []struct {
	name    string
	message render.Message
}{
	{"system", message(eventlog.RoleSystem, eventlog.Text{Text: "You repair builds."})},
	{"two texts", message(eventlog.RoleUser, eventlog.Text{Text: "Why does \"make\" fail?\n"}, eventlog.Text{})},
	{"no blocks", message(eventlog.RoleUser)},
	{"role that is none", message(eventlog.RoleUnspecified, eventlog.Text{Text: "x"})},
	{"beyond ASCII", message(eventlog.RoleUser, eventlog.Text{Text: "é 日本 😀 \u2028 <&> / \x7f \x00 \xff"})},
	{"thinking", message(eventlog.RoleAssistant, eventlog.Thinking{Text: "First I look."})},
	{"signed thinking", message(eventlog.RoleAssistant, eventlog.Thinking{Text: "hm", Signature: "c2ln+/=="})},
	{"redacted thinking", message(eventlog.RoleAssistant, eventlog.Thinking{RedactedData: "\x00\xff\xfe1"})},
	{"encrypted thinking", message(eventlog.RoleAssistant, eventlog.Thinking{EncryptedContent: "gAAAA"})},
	{"thinking of all kinds", message(eventlog.RoleAssistant, eventlog.Thinking{Text: "t", Signature: "s", RedactedData: "r", EncryptedContent: "e"})},
	{"empty thinking", message(eventlog.RoleAssistant, eventlog.Thinking{})},
	{"call", message(eventlog.RoleAssistant, eventlog.Text{Text: "I run it."}, call(`{"command":"make","timeout":60.0}`))},
	{"call without arguments", message(eventlog.RoleAssistant, call(""))},
	{"call with whitespace", message(eventlog.RoleAssistant, call("{\n  \"a b\" : [ 1 , 2 ]\r\n}\t"))},
	{"call with numbers", message(eventlog.RoleAssistant, call(`{"a":1.0,"b":1e400,"c":9223372036854775808,"d":-0,"e":1E+2}`))},
	{"call with members twice", message(eventlog.RoleAssistant, call(`{"b":1,"a":2,"b":3}`))},
	{"call with escapes", message(eventlog.RoleAssistant, call(`{"s":"\ud800\u0041\/ < \" \\"}`))},
	{"deep call", message(eventlog.RoleAssistant, call(strings.Repeat(`[ `, 40)+strings.Repeat(`] `, 40)))},
	{"parallel calls", message(eventlog.RoleAssistant, call(`{}`), eventlog.ToolCall{Name: "n"}, eventlog.ToolCall{CallID: "c"})},
	{"result", message(eventlog.RoleTool, eventlog.ToolResult{CallID: "call_1", ToolName: "bash", Content: []eventlog.Block{eventlog.Text{Text: "ok"}}})},
	{"failed result", message(eventlog.RoleTool, eventlog.ToolResult{CallID: "call_1", IsError: true, Content: []eventlog.Block{eventlog.Text{Text: "no"}}})},
	{"empty result", message(eventlog.RoleTool, eventlog.ToolResult{})},
	{"result of parts", message(eventlog.RoleTool, eventlog.ToolResult{CallID: "c", Content: []eventlog.Block{
		eventlog.Text{Text: "a"}, eventlog.Media{MIMEType: "image/png", Data: "\x89PNG"}, eventlog.ProviderBlock{Provider: "p", JSON: `{"a": 1}`},
	}})},
	{"media", message(eventlog.RoleUser, eventlog.Media{MIMEType: "image/png", Data: "\x89PNG", Tokens: 85})},
	{"media elsewhere", message(eventlog.RoleUser, eventlog.Media{MIMEType: "application/pdf", URI: "https://example.org/a.pdf"})},
	{"media of all kinds", message(eventlog.RoleUser, eventlog.Media{MIMEType: "m", Data: "d", URI: "u"})},
	{"empty media", message(eventlog.RoleUser, eventlog.Media{})},
	{"provider block", message(eventlog.RoleAssistant, eventlog.ProviderBlock{Provider: "openai", JSON: `{ "type" : "web_search_call", "n": 1.50 }`})},
	{"what is not rendered", render.Message{
		Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: "x"}}, Origin: render.Stubbed, Seqs: []eventlog.Seq{1}, Tokens: 7, Cause: "c",
	}},
}

func message(role eventlog.Role, blocks ...eventlog.Block) render.Message {
	return render.Message{Role: role, Blocks: blocks}
}

func call(arguments string) eventlog.ToolCall {
	return eventlog.ToolCall{CallID: "call_1", Name: "bash", Arguments: arguments}
}

func TestCanonicalBytes(t *testing.T) {
	const golden = "testdata/canonical.golden"
	var got strings.Builder
	for _, m := range messages {
		line := string(render.AppendJSON(nil, m.message))
		if !json.Valid([]byte(line)) || strings.ContainsAny(line, "\n\r") {
			t.Errorf("%s: no JSON on one line: %s", m.name, line)
		}
		got.WriteString("# " + m.name + "\n" + line + "\n")
	}
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(string(data), "\n")
	for i, line := range strings.Split(got.String(), "\n") {
		if i >= len(want) || line != want[i] {
			t.Fatalf("line %d (-rewrite accepts it): %s", i+1, line)
		}
	}
	if n := strings.Count(got.String(), "\n") + 1; len(want) != n {
		t.Errorf("%d lines instead of %d", n, len(want))
	}
}

func TestAppendJSONAppends(t *testing.T) {
	one := render.AppendJSON(nil, messages[0].message)
	two := render.AppendJSON(slices.Clone(one), messages[1].message)
	if want := string(one) + string(render.AppendJSON(nil, messages[1].message)); string(two) != want {
		t.Errorf("%s, want %s", two, want)
	}
}

func drawBlock(depth int) *rapid.Generator[eventlog.Block] {
	text := rapid.OneOf(rapid.String(), rapid.Just(""), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	raw := rapid.SampledFrom([]string{`{}`, `{"a": 1.0}`, `[ ]`, "{\n\"k\": \"\\ud800 x\"\n}", ` 1e400 `, `"x"`})
	return rapid.Custom(func(t *rapid.T) eventlog.Block {
		switch rapid.IntRange(0, 4+depth).Draw(t, "kind") {
		case 0:
			return eventlog.Text{Text: text.Draw(t, "text")}
		case 1:
			return eventlog.Thinking{Text: text.Draw(t, "text"), Signature: text.Draw(t, "signature"), RedactedData: text.Draw(t, "redacted"), EncryptedContent: text.Draw(t, "encrypted")}
		case 2:
			return eventlog.ToolCall{CallID: text.Draw(t, "id"), Name: text.Draw(t, "name"), Arguments: raw.Draw(t, "arguments")}
		case 3:
			return eventlog.Media{MIMEType: text.Draw(t, "type"), Data: text.Draw(t, "data"), URI: text.Draw(t, "uri")}
		case 4:
			return eventlog.ProviderBlock{Provider: text.Draw(t, "provider"), JSON: raw.Draw(t, "json")}
		default:
			return eventlog.ToolResult{
				CallID: text.Draw(t, "id"), ToolName: text.Draw(t, "name"), IsError: rapid.Bool().Draw(t, "error"),
				Content: rapid.SliceOfN(drawBlock(0), 0, 3).Draw(t, "content"),
			}
		}
	})
}

// blockJSON is a block as encoding/json reads the canonical bytes.
type blockJSON struct {
	Text *struct {
		Text *string `json:"text"`
	} `json:"text"`
	Thinking *struct {
		Text             string `json:"text"`
		Signature        string `json:"signature"`
		RedactedData     []byte `json:"redacted_data"`
		EncryptedContent string `json:"encrypted_content"`
	} `json:"thinking"`
	ToolCall *struct {
		CallID    *string         `json:"call_id"`
		Name      *string         `json:"name"`
		Arguments json.RawMessage `json:"arguments_json"`
	} `json:"tool_call"`
	ToolResult *struct {
		CallID   *string     `json:"call_id"`
		ToolName string      `json:"tool_name"`
		Content  []blockJSON `json:"content"`
		IsError  bool        `json:"is_error"`
	} `json:"tool_result"`
	Media *struct {
		MIMEType string `json:"mime_type"`
		Data     string `json:"data"`
		URI      string `json:"uri"`
	} `json:"media"`
	Provider *struct {
		Provider string          `json:"provider"`
		JSON     json.RawMessage `json:"json"`
	} `json:"provider"`
}

// same reports whether what was read is the block that was written.
func (r blockJSON) same(block eventlog.Block) bool {
	utf8 := func(s string) string { return string([]rune(s)) }
	minified := func(s string) string {
		return strings.NewReplacer("\": ", "\":", "[ ]", "[]", "\n", "").Replace(strings.TrimSpace(s))
	}
	switch b := block.(type) {
	case eventlog.Text:
		return r.Text != nil && r.Text.Text != nil && *r.Text.Text == utf8(b.Text)
	case eventlog.Thinking:
		return r.Thinking != nil && r.Thinking.Text == utf8(b.Text) && r.Thinking.Signature == utf8(b.Signature) &&
			string(r.Thinking.RedactedData) == b.RedactedData && r.Thinking.EncryptedContent == utf8(b.EncryptedContent)
	case eventlog.ToolCall:
		return r.ToolCall != nil && *r.ToolCall.CallID == utf8(b.CallID) && *r.ToolCall.Name == utf8(b.Name) && string(r.ToolCall.Arguments) == minified(b.Arguments)
	case eventlog.ToolResult:
		return r.ToolResult != nil && *r.ToolResult.CallID == utf8(b.CallID) && r.ToolResult.ToolName == utf8(b.ToolName) &&
			r.ToolResult.IsError == b.IsError && r.ToolResult.Content != nil && slices.EqualFunc(r.ToolResult.Content, b.Content, blockJSON.same)
	case eventlog.Media:
		return r.Media != nil && r.Media.MIMEType == utf8(b.MIMEType) && r.Media.Data == base64.StdEncoding.EncodeToString([]byte(b.Data)) && r.Media.URI == utf8(b.URI)
	case eventlog.ProviderBlock:
		return r.Provider != nil && r.Provider.Provider == utf8(b.Provider) && string(r.Provider.JSON) == minified(b.JSON)
	}
	return false
}

// What encoding/json reads back is what was written, and it is on one line.
func TestAppendJSONReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := message(rapid.SampledFrom([]eventlog.Role{eventlog.RoleSystem, eventlog.RoleUser, eventlog.RoleAssistant, eventlog.RoleTool}).Draw(t, "role"),
			rapid.SliceOfN(drawBlock(1), 0, 4).Draw(t, "blocks")...)
		line := render.AppendJSON(nil, m)
		if strings.ContainsAny(string(line), "\n\r") {
			t.Fatalf("more than a line: %q", line)
		}
		var got struct {
			Role   string      `json:"role"`
			Blocks []blockJSON `json:"blocks"`
		}
		decoder := json.NewDecoder(strings.NewReader(string(line)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&got); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if got.Role != m.Role.String() || got.Blocks == nil || !slices.EqualFunc(got.Blocks, m.Blocks, blockJSON.same) {
			t.Fatalf("%+v became %s", m, line)
		}
	})
}
