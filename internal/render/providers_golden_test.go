package render_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

const (
	png    = "\x89PNG\r\n\x1a\n1"
	claude = "claude-opus-4"
	flash  = "gemini-3-pro"
)

// by is an assistant's message of a model, as event 3 of the log.
func by(model string, blocks ...eventlog.Block) render.Message {
	m := message(eventlog.RoleAssistant, blocks...)
	m.Model = model
	return placed(3, m)
}

// placed gives the message's blocks their places in the log.
func placed(seq eventlog.Seq, m render.Message) render.Message {
	m.Seqs = []eventlog.Seq{seq}
	for i := range m.Blocks {
		m.Places = append(m.Places, eventlog.Place{Seq: seq, Block: i})
	}
	return m
}

func user(blocks ...eventlog.Block) render.Message {
	return placed(2, message(eventlog.RoleUser, blocks...))
}

func system(texts ...string) render.Message {
	m := message(eventlog.RoleSystem)
	for _, s := range texts {
		m.Blocks = append(m.Blocks, text(s))
	}
	return placed(1, m)
}

func result(id, tool string, content ...eventlog.Block) render.Message {
	return placed(4, message(eventlog.RoleTool, eventlog.ToolResult{CallID: id, ToolName: tool, Content: content}))
}

func failed(id, tool string, content ...eventlog.Block) render.Message {
	return placed(4, message(eventlog.RoleTool, eventlog.ToolResult{CallID: id, ToolName: tool, Content: content, IsError: true}))
}

func run(id, arguments string) eventlog.ToolCall {
	return eventlog.ToolCall{CallID: id, Name: "bash", Arguments: arguments}
}

func native(provider, json string) eventlog.ProviderBlock {
	return eventlog.ProviderBlock{Provider: provider, JSON: json}
}

func reminding(role eventlog.Role, s string) render.Message {
	m := placed(9, message(role, text(s)))
	m.Origin = render.Reminder
	return m
}

// conversations show each shape of message, and what is around it.
var conversations = []struct {
	name     string
	messages []render.Message
}{
	{"none", nil},
	{"system prompt alone", []render.Message{system("You repair builds.")}},
	{"system prompts", []render.Message{system("a", " ", "b"), system("c"), user(text("go"))}},
	{"system message later", []render.Message{system("a"), user(text("go")), system("b", "c"), by(claude, text("ok"))}},
	{"system reminder", []render.Message{system("a"), user(text("go")), reminding(eventlog.RoleSystem, "run the tests")}},
	{"system reminder at the beginning", []render.Message{system("a"), reminding(eventlog.RoleSystem, "run the tests")}},
	{"system prompt with more than text", []render.Message{placed(1, message(eventlog.RoleSystem,
		eventlog.Media{MIMEType: "image/png", Data: png}, native("openai", `{"type":"input_file"}`), eventlog.Thinking{Text: "hm"}))}},
	{"no system prompt", []render.Message{user(text("go")), by(claude, text("ok"))}},
	{"the assistant first", []render.Message{system("a"), by(claude, text("hello")), user(text("go"))}},
	{"turns in a row", []render.Message{user(text("a")), user(text("b")), by(claude, text("c")), by(claude, text("d")), user(text("e"))}},
	{"empty texts", []render.Message{user(text(""), text("a"), text(" \n\x1f")), by(claude, text("\t")), by("", text("")), user(text("b"))}},
	{"whitespace at the end", []render.Message{user(text("a \n")), by(claude, text("b \n"), text("c \n"))}},
	{"escapes", []render.Message{user(text("é \"\\\n 😀 \u2028 <&> \x00 \xff"))}},
	{"calls", []render.Message{
		user(text("go")), by(claude, text("I look."), run("c1", `{"n": 1.0}`), run("c2", ``)),
		result("c1", "bash", text("one"), text("two")), failed("c2", "bash", text("no")), user(text("and?")),
	}},
	{"text behind a call", []render.Message{user(text("go")), by(claude, run("c1", `{}`), text("I look.")), result("c1", "bash", text("ok"))}},
	{"call ids", []render.Message{
		user(text("go")), by(claude, run("functions.bash:0", `{}`), run(strings.Repeat("i", 60), `{}`)),
		result("functions.bash:0", "bash", text("ok")), result(strings.Repeat("i", 60), "bash", text("ok")),
	}},
	{"call id used before", func() []render.Message {
		again, answer := by(claude, run("c1", `{}`)), result("c1", "bash", text("two"))
		again.Repeats = []uint32{1}
		answer.Repeats = again.Repeats
		return []render.Message{user(text("go")), by(claude, run("c1", `{}`)), result("c1", "bash", text("one")), again, answer}
	}()},
	{"tool names", []render.Message{
		user(text("go")), by(claude, eventlog.ToolCall{CallID: "a", Name: "mcp.server:my tool"}, eventlog.ToolCall{CallID: "b", Name: "1" + strings.Repeat("é", 80)}),
		result("a", "mcp.server:my tool", text("ok")), result("b", "1"+strings.Repeat("é", 80), text("ok")),
	}},
	{"result under another name", []render.Message{user(text("go")), by(claude, run("a", `{}`)), result("a", "Bash", text("ok"))}},
	{"arguments", []render.Message{
		user(text("go")),
		by(claude, run("a", "{ \"b\" : 1.0,\n\"a\":1e300,\"c\":9223372036854775808 }"), run("b", `[1, 2]`), run("c", `{"cmd": "ma`), run("d", `null`), run("e", "{\"a\":\"\xff\"}"), run("f", `{"s":"\ud800\/"}`), run("g", `{"n":1e400}`)),
		result("a", "bash"), result("b", "bash"), result("c", "bash"), result("d", "bash"), result("e", "bash"), result("f", "bash"), result("g", "bash"),
	}},
	{"empty results", []render.Message{
		user(text("go")), by(claude, run("a", `{}`), run("b", `{}`), run("c", `{}`)), result("a", "bash"), failed("b", "bash"), failed("c", "bash", text(" ")),
	}},
	{"media", []render.Message{user(
		eventlog.Media{MIMEType: "image/png", Data: png}, eventlog.Media{MIMEType: "image/jpg", Data: "\xff\xd8\xff1"}, eventlog.Media{MIMEType: "image/png", Data: "GIF89a1"},
		eventlog.Media{MIMEType: "image/webp", Data: "RIFF1234WEBP1"}, eventlog.Media{MIMEType: "image/tiff", Data: "II*1"}, eventlog.Media{MIMEType: "application/pdf", Data: "%PDF-1"},
		eventlog.Media{MIMEType: "text/plain; charset=utf-8", Data: "hello"}, eventlog.Media{MIMEType: "audio/wav", Data: "RIFF"}, eventlog.Media{MIMEType: "video/mp4", Data: "1"}, eventlog.Media{},
	)}},
	{"media elsewhere", []render.Message{user(
		eventlog.Media{URI: "https://example.org/a.PNG?x=.y"}, eventlog.Media{MIMEType: "application/pdf", URI: "https://example.org/a"}, eventlog.Media{MIMEType: "image/png", URI: "http://example.org/a"},
		eventlog.Media{MIMEType: "video/mp4", URI: "gs://b/o"}, eventlog.Media{URI: "https://example.org/a"}, eventlog.Media{MIMEType: "image/png", URI: "file:///etc/passwd"},
	)}},
	{"media in results", []render.Message{
		user(text("go")), by(claude, run("a", `{}`), run("b", `{}`)),
		result("a", "bash", text("see"), eventlog.Media{MIMEType: "image/png", Data: png}, eventlog.Media{MIMEType: "image/tiff", Data: "II*1"}),
		failed("b", "bash", eventlog.Media{MIMEType: "image/png", Data: png}), user(text("and?")),
	}},
	{"media of the assistant", []render.Message{user(text("draw")), by(flash, eventlog.Media{MIMEType: "image/png", Data: png})}},
	{"media of an injection", []render.Message{{Role: eventlog.RoleUser, Origin: render.Injected, Blocks: []eventlog.Block{eventlog.Media{MIMEType: "image/tiff", Data: "II*1"}}}}},
	{"reasoning of Anthropic", []render.Message{user(text("go")), by(claude,
		eventlog.Thinking{Text: "hm\n", Signature: "c2ln+/=="}, eventlog.Thinking{RedactedData: "EmwKAh/=="}, eventlog.Thinking{RedactedData: "\x00\xff"}, eventlog.Thinking{Text: "open"},
		eventlog.Thinking{Signature: "b21pdHRlZA=="}, text("ok"))}},
	{"reasoning of Gemini", []render.Message{user(text("go")), by(flash,
		eventlog.Thinking{Text: "hm", Signature: "c2ln"}, eventlog.Thinking{Text: "open"}, text("I look."), eventlog.Thinking{Signature: "Y2FsbA=="}, run("a", `{}`), run("b", `{}`),
	), result("a", "bash", text("ok")), result("b", "bash", text("ok")), by(flash, text("done"), eventlog.Thinking{Signature: "bGFzdA=="})}},
	{"signatures of Gemini", []render.Message{user(text("go")), by(flash,
		native("google", `{"thoughtSignature":"c2ln"}`), run("a", `{}`)), result("a", "bash", text("ok")),
		by(flash, eventlog.Thinking{Text: "hm", Signature: "b25l"}, eventlog.Thinking{Signature: "dHdv"}, text("ok"), eventlog.Thinking{Signature: "not base64!"})}},
	{"reasoning of OpenAI", []render.Message{user(text("go")), by("o3", eventlog.Thinking{Text: "hm", EncryptedContent: "gAAA"}, text("ok"))}},
	{"reasoning of nobody known", []render.Message{user(text("go")), by("", eventlog.Thinking{Text: "hm", Signature: "c2ln"}, eventlog.Thinking{Text: "hm", Signature: "c2ln", RedactedData: "x"}, text("ok"))}},
	{"reasoning of one that is not named", []render.Message{user(text("go")), by("", eventlog.Thinking{Text: "hm", Signature: "c2ln"}, eventlog.Thinking{RedactedData: "EmwKAh/=="}, text("ok")),
		user(text("and?")), by("", eventlog.Thinking{Text: "hm", EncryptedContent: "gA"}, eventlog.Thinking{RedactedData: "EmwKAh/=="}, text("ok"))}},
	{"reasoning that nothing follows", []render.Message{user(text("go")), by(claude, eventlog.Thinking{Text: "hm", Signature: "c2ln"}),
		by(flash, eventlog.Thinking{Text: "hm", Signature: "c2ln"}), by(claude, text("ok"), eventlog.Thinking{Text: "hm", Signature: "c2ln"}, text("")), user(text("and?"))}},
	{"reasoning behind a call", []render.Message{user(text("go")), by(claude, run("a", `{}`), eventlog.Thinking{Text: "hm", Signature: "c2ln"}), result("a", "bash", text("ok"))}},
	{"Anthropic's own", []render.Message{
		user(text("go"), native("anthropic", `{"type": "search_result", "source": "s", "title": "t", "content": []}`), native("anthropic", `{"type":"thinking"}`), native("anthropic", `{"type":"text","text":" "}`), native("anthropic", `[`)),
		by(claude, native("anthropic", `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"q": 1.0}}`), native("anthropic", `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`),
			native("anthropic", `{"type":"text","text":"so ","citations":[]}`), native("anthropic", `{"type":"server_tool_use","id":"srvtoolu_2","name":"web_search","input":{}}`), native("anthropic", `{"type":"image"}`), run("a", `{}`)),
		result("a", "bash", native("anthropic", `{"type":"tool_reference","tool_name":"t"}`), native("anthropic", `[{"type":"text","text":"x"}]`)),
		by(claude, native("anthropic", `{"type":"text","text":"so ","citations":[]}`)),
	}},
	{"OpenAI's own", []render.Message{user(text("go")), by("gpt-5", native("openai", `{"type":"web_search_call","id":"ws_1"}`), native("openai", `{"type":"refusal","refusal":"no"}`), native("", `7`))}},
	{"Google's own", []render.Message{
		user(native("google", `{"videoMetadata": {"fps": 1.0}, "fileData": {"mimeType": "video/mp4", "fileUri": "https://youtu.be/x"}}`), native("google", `{"functionCall":{}}`), native("google", `{"text":""}`)),
		by(flash, eventlog.Thinking{Signature: "c2ln"}, native("google", `{"executableCode": {"language": "PYTHON", "code": "1"}}`), native("google", `{"codeExecutionResult":{"outcome":"OUTCOME_OK"}}`), native("google", `{"new":{}}`)),
	}},
	{"members for the block after them", []render.Message{user(text("go")), by(claude,
		native("anthropic", `{"phase":"x"}`), text("I look."), native("anthropic", `{"caller": {"type": "direct"}, "toolset_name":"browser"}`), run("a", `{}`),
		native("openai", `{"namespace":"n"}`), run("b", `{}`), native("anthropic", `{"caller":{"type":"robot"},"toolset_name":" "}`), run("c", `{}`), native("anthropic", `{"caller":{}}`),
	), result("a", "bash", text("ok")), result("b", "bash", text("ok")), result("c", "bash", text("ok"))}},
	{"blocks out of place", []render.Message{user(run("a", `{}`), eventlog.ToolResult{CallID: "a"}, eventlog.Thinking{Text: "hm"}), by(claude, eventlog.ToolResult{CallID: "a"})}},
	{"origins", func() []render.Message {
		stubbed := result("a", "bash", text("[gone: ctx:4.0]"))
		stubbed.Origin, stubbed.Cause, stubbed.Tokens = render.Stubbed, "retention", 9
		return []render.Message{user(text("go")), by(claude, run("a", `{}`)), stubbed, reminding(eventlog.RoleUser, "run the tests")}
	}()},
}

var kindNames = map[render.ConversionKind]string{
	render.Described: "described", render.LeftOut: "left out", render.Renamed: "renamed", render.Moved: "moved", render.Wrapped: "wrapped",
}

// transcriptOf is what conversations become in a format: each message's line, and what
// was converted in it.
func transcriptOf(t *testing.T, f *render.Format) string {
	var out strings.Builder
	for _, c := range conversations {
		fmt.Fprintf(&out, "# %s\n", c.name)
		messages := joined(f, c.messages)
		for i, m := range messages {
			if m.System != (i == 0 && strings.HasPrefix(string(m.JSON), `{"system`)) {
				t.Errorf("%s: line %d: system is %v", c.name, i, m.System)
			}
			fmt.Fprintf(&out, "%s\n", m.JSON)
			for _, x := range m.Conversions {
				fmt.Fprintf(&out, "! %d.%d %s: %s\n", x.Seq, x.Block, kindNames[x.Kind], x.What)
			}
		}
		for _, v := range rules.Of(f.Name)(linesOf(messages)) {
			t.Errorf("%s: %v", c.name, v)
		}
	}
	return out.String()
}

func TestProviderGoldens(t *testing.T) {
	for _, f := range providerFormats() {
		t.Run(f.Name, func(t *testing.T) {
			golden := "testdata/" + f.Name + ".golden"
			got := transcriptOf(t, f)
			if *rewrite {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			data, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Split(string(data), "\n")
			for i, line := range strings.Split(got, "\n") {
				if i >= len(want) || line != want[i] {
					t.Fatalf("line %d (-rewrite accepts it): %s", i+1, line)
				}
			}
			if got != string(data) {
				t.Errorf("%d bytes instead of %d", len(got), len(data))
			}
		})
	}
}

// providerFormats are the formats of Anthropic and Google.
func providerFormats() []*render.Format {
	var out []*render.Format
	for _, name := range []string{"anthropic", "gemini"} {
		f, ok := render.FormatNamed(name)
		if !ok {
			panic("no format " + name)
		}
		out = append(out, f)
	}
	return out
}

func linesOf(messages []render.Encoded) [][]byte {
	lines := make([][]byte, len(messages))
	for i := range messages {
		lines[i] = messages[i].JSON
	}
	return lines
}

// joined renders messages and puts them together.
func joined(f *render.Format, messages []render.Message) []render.Encoded {
	var fragments []render.Fragment
	for _, m := range messages {
		fragments = append(fragments, f.Fragments(m)...)
	}
	return f.Join(fragments)
}
