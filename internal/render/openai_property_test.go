package render_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

var (
	drawnModels = []string{"", "gpt-5", "claude-opus-4", "gemini-3-pro", "openai/claude"}
	drawnTexts  = []string{"", " ", "\n\t", "a", "two words", "\x1f", "\"\\\u2028", "\xff", strings.Repeat("long ", 40)}
	drawnBlocks = []string{
		`{"type":"refusal","refusal":"no"}`, `{"type":"refusal","refusal":""}`, `{"type":"refusal","refusal":"no","more":1}`,
		`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}`,
		`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search"},"status":"completed"}`,
		`{"type":"web_search_call","id":"REDACTED","status":"completed","action":{"type":"search"}}`,
		`{"type":"web_search_call","status":"completed"}`,
		`{"type":"file_search_call","id":"fs_1","status":"completed","queries":["q"],"results":null}`,
		`{"type":"code_interpreter_call","id":"ci_1","status":"completed","code":"1","container_id":"c","outputs":[]}`,
		`{"type":"image_generation_call","id":"ig_1","status":"completed","result":"iVBORw0KGgo="}`,
		`{"type":"mcp_call","id":"mcp_1","arguments":"{}","name":"n","server_label":"s","output":"o"}`,
		`{"type":"compaction","id":"cmp_1","encrypted_content":"gAAA"}`, `{"type":"compaction","id":"cmp_2","encrypted_content":"\t"}`,
		`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"t","annotations":[]}]}`,
		`{"type":"output_text","text":"t","annotations":[{"type":"file_path","file_id":"f","index":1}]}`,
		`{"type":"output_text","text":"t","annotations":[{"type":"file_path","file_id":"f"}]}`,
		`{"type":"image_url","image_url":{"url":"https://example.com/a.png","detail":"high"}}`,
		`{"type":"image_url","image_url":{"url":"gs://a.png"}}`,
		`{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo=","detail":"low"}`,
		`{"type":"input_image","image_url":"data:image/png;base64,i"}`,
		`{"type":"input_image","file_id":"file-1"}`, `{"type":"input_image","file_id":"file-1","detail":"original"}`,
		`{"type":"input_audio","input_audio":{"data":"SUQz","format":"mp3"}}`,
		`{"type":"file","file":{"file_id":"f"}}`, `{"type":"input_file","file_url":"https://example.com/a.pdf"}`,
		`{"type":"computer_call","call_id":"c"}`, `{"thoughtSignature":"s"}`, `{"type":1}`, `no JSON`, ``, `[]`, `null`,
	}
	drawnThinking = []eventlog.Thinking{
		{Text: "open"}, {Text: "signed", Signature: "sig"}, {RedactedData: "r"}, {EncryptedContent: "gA"}, {EncryptedContent: "gB", Signature: "rs_1"},
		{Signature: `{"type":"reasoning","id":"rs_2","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"gC"}`},
		{EncryptedContent: " "}, {Signature: `{"type":"reasoning","summary":[],"encrypted_content":"\u00a0"}`},
		{Signature: `{"type":"reasoning","id":"","summary":[],"encrypted_content":"gC"}`}, {EncryptedContent: "gD", Signature: "rs_ no id"},
	}
	drawnArguments = []string{"", "{}", `{"a": 1.0}`, `{"a":`, `[1e400]`, `"\ud800"`, "null", "\xff"}
	drawnNames     = []string{"read", "mcp__a.b", "", strings.Repeat("n", 70), "é"}
	drawnIDs       = []string{"c1", "c2", "call_1|fc_1", "REDACTED", strings.Repeat("i", 50), ""}
)

func drawText(t *rapid.T) eventlog.Block {
	return eventlog.Text{Text: rapid.SampledFrom(drawnTexts).Draw(t, "text")}
}

func drawMedia(t *rapid.T) eventlog.Block {
	return eventlog.Media{
		MIMEType: rapid.SampledFrom([]string{"", "image/png", "image/tiff", "application/pdf", "audio/wav", "audio/mpeg", "text/plain", "text/plain; charset=utf-8"}).Draw(t, "type"),
		Data:     rapid.SampledFrom([]string{"", "\x89PNG\r\n\x1a\n", "plain", " ", "\xff\xd8\xff\xe0", "\xfe"}).Draw(t, "data"),
		URI:      rapid.SampledFrom([]string{"", "https://example.com/a.png", "https://example.com/a.pdf", "file:///a.png", "https://example.com/a"}).Draw(t, "uri"),
	}
}

func drawNative(t *rapid.T) eventlog.Block {
	return ownBlock(rapid.SampledFrom([]string{"openai", "openai", "anthropic", "google", ""}).Draw(t, "provider"), rapid.SampledFrom(drawnBlocks).Draw(t, "json"))
}

func drawContent(t *rapid.T, more ...func(*rapid.T) eventlog.Block) []eventlog.Block {
	kinds := append([]func(*rapid.T) eventlog.Block{drawText, drawMedia, drawNative}, more...)
	var out []eventlog.Block
	for range rapid.IntRange(0, 4).Draw(t, "blocks") {
		out = append(out, kinds[rapid.IntRange(0, len(kinds)-1).Draw(t, "kind")](t))
	}
	return out
}

// drawTalk draws a conversation as a view lays one out: each assistant message with its
// results right after it, in the order of its calls.
func drawTalk(t *rapid.T) []render.Message {
	var out []render.Message
	made := map[string]uint32{}
	add := func(m render.Message) {
		seq := eventlog.Seq(len(out) + 1)
		m.Origin, m.Seqs, m.Tokens = render.Verbatim, []eventlog.Seq{seq}, 7
		for i := range m.Blocks {
			m.Places = append(m.Places, eventlog.Place{Seq: seq, Block: i})
		}
		out = append(out, m)
	}
	for range rapid.IntRange(0, 8).Draw(t, "messages") {
		switch role := rapid.SampledFrom([]eventlog.Role{eventlog.RoleSystem, eventlog.RoleUser, eventlog.RoleAssistant, eventlog.RoleAssistant}).Draw(t, "role"); role {
		case eventlog.RoleAssistant:
			thinking := func(t *rapid.T) eventlog.Block { return rapid.SampledFrom(drawnThinking).Draw(t, "thinking") }
			calls := func(t *rapid.T) eventlog.Block {
				c := eventlog.ToolCall{CallID: rapid.SampledFrom(drawnIDs).Draw(t, "id"), Name: rapid.SampledFrom(drawnNames).Draw(t, "name"), Arguments: rapid.SampledFrom(drawnArguments).Draw(t, "arguments")}
				return c
			}
			often := slices.Repeat([]func(*rapid.T) eventlog.Block{thinking, calls}, 2)
			m := render.Message{Role: role, Model: rapid.SampledFrom(drawnModels).Draw(t, "model"), Blocks: drawContent(t, often...)}
			m.Repeats = repeatsOf(m.Blocks, made)
			add(m)
			for i, b := range m.Blocks {
				if c, ok := b.(eventlog.ToolCall); ok {
					add(render.Message{Role: eventlog.RoleTool, Repeats: m.Repeats[i : i+1], Blocks: []eventlog.Block{
						eventlog.ToolResult{CallID: c.CallID, ToolName: c.Name, Content: drawContent(t), IsError: rapid.Bool().Draw(t, "failed")},
					}})
				}
			}
		default:
			add(render.Message{Role: role, Blocks: drawContent(t)})
		}
	}
	return out
}

func TestOpenAIFormatsKeepTheRules(t *testing.T) {
	formats := openAIFormats(t)
	rapid.Check(t, func(t *rapid.T) {
		messages := drawTalk(t)
		for _, f := range formats {
			got := rendered(f, messages)
			for _, violation := range rules.Of(f.Name)(linesOf(got)) {
				t.Errorf("%s: %v\n%s", f.Name, violation, goldenLines(got))
			}
			if again := rendered(f, messages); goldenLines(again) != goldenLines(got) {
				t.Errorf("%s: other bytes for the same messages", f.Name)
			}
			var tokens uint64
			for _, m := range got {
				tokens += m.Tokens
			}
			if tokens > 7*uint64(len(messages)) {
				t.Errorf("%s: %d tokens of %d messages with 7 each", f.Name, tokens, len(messages))
			}
			checkResultsAnswered(t, f.Name, messages, got)
			cut := rapid.IntRange(0, len(messages)).Draw(t, "cut")
			for cut > 0 && cut < len(messages) && messages[cut].Role == eventlog.RoleTool {
				cut++ // a group is there as a whole
			}
			checkPrefix(t, rendered(f, messages[:cut]), got)
		}
	})
}

// checkResultsAnswered counts the results of the lines against those of the messages.
func checkResultsAnswered(t *rapid.T, format string, messages []render.Message, got []render.Encoded) {
	want, have := 0, 0
	for _, m := range messages {
		if m.Role == eventlog.RoleTool {
			want++
		}
	}
	for _, m := range got {
		var line struct{ Role, Type string }
		if err := json.Unmarshal(m.JSON, &line); err != nil {
			t.Fatal(err)
		}
		if line.Role == "tool" || line.Type == "function_call_output" {
			have++
		}
	}
	if want != have {
		t.Errorf("%s: %d results instead of %d", format, have, want)
	}
}

// FuzzOpenAIArguments checks that arguments go out as the string that they were.
func FuzzOpenAIArguments(f *testing.F) {
	for _, arguments := range []string{
		`{"a": 1.0, "b": 1e400, "a": 9223372036854775808}`, `{"s":"\ud800 \u00e9\/"}`, strings.Repeat(`[`, 20000) + strings.Repeat(`]`, 20000),
		`{"a":`, ``, `null`, "\x00", "{\"a\": \"\u2028\"}", strings.Repeat(`{"a":`, 9500) + `1` + strings.Repeat(`}`, 9500),
	} {
		f.Add(arguments)
	}
	formats := openAIFormats(f)
	f.Fuzz(func(t *testing.T, arguments string) {
		want := string([]rune(arguments)) // a byte that is no UTF-8 becomes one U+FFFD
		if arguments == "" {
			want = "{}"
		}
		messages := openAITalk(modelSaid("gpt-5", makes("c", "t", arguments)), answers("c", text("r")))
		for _, f := range formats {
			var line struct {
				Arguments string
				ToolCalls []struct {
					Function struct{ Arguments string }
				} `json:"tool_calls"`
			}
			if err := json.Unmarshal(rendered(f, messages)[0].JSON, &line); err != nil {
				t.Fatal(err)
			}
			got := line.Arguments
			if len(line.ToolCalls) > 0 {
				got = line.ToolCalls[0].Function.Arguments
			}
			if got != want {
				t.Errorf("%s: %q became %q", f.Name, arguments, got)
			}
		}
	})
}

// FuzzOpenAINative checks that a block of OpenAI's own, whatever it is, makes no request that
// the provider would refuse.
func FuzzOpenAINative(f *testing.F) {
	for _, block := range drawnBlocks {
		f.Add(block, "")
	}
	for _, t := range drawnThinking {
		f.Add("", t.Signature)
	}
	formats := openAIFormats(f)
	f.Fuzz(func(t *testing.T, block, signature string) {
		messages := openAITalk(
			say(eventlog.RoleUser, text("go"), ownBlock("openai", block)),
			modelSaid("gpt-5", eventlog.Thinking{Signature: signature}, ownBlock("openai", block), eventlog.Thinking{EncryptedContent: "g", Signature: signature}, makes("c", "t", "{}")),
			answers("c", ownBlock("openai", block)),
		)
		for _, f := range formats {
			got := rendered(f, messages)
			for _, violation := range rules.Of(f.Name)(linesOf(got)) {
				t.Errorf("%s: %v\n%s", f.Name, violation, goldenLines(got))
			}
		}
	})
}

func BenchmarkOpenAIFragments(b *testing.B) {
	for _, f := range openAIFormats(b) {
		b.Run(f.Name, func(b *testing.B) {
			messages := openAITalk(
				modelSaid("gpt-5", eventlog.Thinking{EncryptedContent: strings.Repeat("g", 800)}, text("I look."), makes("c1", "read", `{"path":"internal/render/format.go"}`)),
				answers("c1", text(strings.Repeat("line of a file\n", 300))),
			)
			var bytes int
			for _, m := range rendered(f, messages) {
				bytes += len(m.JSON)
			}
			b.SetBytes(int64(bytes))
			b.ReportAllocs()
			for b.Loop() {
				for _, m := range messages {
					f.Fragments(m)
				}
			}
		})
	}
}
