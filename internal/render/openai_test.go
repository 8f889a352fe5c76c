package render_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// openAITalk is a conversation of one message after the other, whose blocks have places in the
// log.
func openAITalk(all ...*eventlog.Message) []render.Message {
	out := make([]render.Message, len(all))
	for i, m := range all {
		seq := eventlog.Seq(i + 1)
		out[i] = render.Message{Role: m.Role, Model: m.Model, Blocks: m.Blocks, Origin: render.Verbatim, Seqs: []eventlog.Seq{seq}, Tokens: 10}
		for b := range m.Blocks {
			out[i].Places = append(out[i].Places, eventlog.Place{Seq: seq, Block: b})
		}
	}
	return out
}

func modelSaid(model string, blocks ...eventlog.Block) *eventlog.Message {
	return &eventlog.Message{Role: eventlog.RoleAssistant, Model: model, Blocks: blocks}
}

func makes(id, name, arguments string) eventlog.Block {
	return eventlog.ToolCall{CallID: id, Name: name, Arguments: arguments}
}

func answers(id string, content ...eventlog.Block) *eventlog.Message {
	return say(eventlog.RoleTool, eventlog.ToolResult{CallID: id, ToolName: "read", Content: content})
}

func fails(id string, content ...eventlog.Block) *eventlog.Message {
	return say(eventlog.RoleTool, eventlog.ToolResult{CallID: id, ToolName: "read", Content: content, IsError: true})
}

func ownBlock(provider, json string) eventlog.Block {
	return eventlog.ProviderBlock{Provider: provider, JSON: json}
}

var (
	picture   = eventlog.Media{MIMEType: "image/png", Data: "\x89PNG\r\n\x1a\n"}
	onlinePic = eventlog.Media{MIMEType: "image/jpeg", URI: "https://example.com/a.jpg"}
	pdf       = eventlog.Media{MIMEType: "application/pdf", Data: "%PDF-1.7"}
)

// openAITalks are conversations of every shape.
var openAITalks = []struct {
	name     string
	messages []render.Message
}{
	{"texts", openAITalk(say(eventlog.RoleSystem, text("You repair builds.")), say(eventlog.RoleUser, text("Why does \"make\" fail?")), modelSaid("gpt-5", text("I look.")))},
	{"several leading system messages, and later ones", openAITalk(
		say(eventlog.RoleSystem, text("One.")), say(eventlog.RoleSystem, text("Two."), text("Three.")), say(eventlog.RoleUser, text("hi")), say(eventlog.RoleSystem, text("Later.")), say(eventlog.RoleUser, text("go on")))},
	{"blank and empty texts", openAITalk(
		say(eventlog.RoleSystem, text("")), say(eventlog.RoleUser, text(""), text(" \n")), say(eventlog.RoleUser, text("a"), text("\t"), text("b")), modelSaid("gpt-5", text(" ")), modelSaid("gpt-5", text("x"), text("")))},
	{"calls in parallel", openAITalk(
		say(eventlog.RoleUser, text("look")),
		modelSaid("gpt-5", text("Both."), makes("c1", "read", `{"n": 1.0, "n": 9007199254740993}`), makes("c2", "bash", "")),
		answers("c1", text("one")), fails("c2", text("exit 1"), text("more")))},
	{"arguments that are no JSON", openAITalk(say(eventlog.RoleUser, text("go")), modelSaid("gpt-5", makes("c1", "patch", "{\"input\": \"*** Begin"), makes("c2", "patch", `"text"`)), answers("c1", text("a")), answers("c2", text("b")))},
	{"results without text", openAITalk(
		say(eventlog.RoleUser, text("go")), modelSaid("gpt-5", makes("c1", "read", "{}"), makes("c2", "read", "{}"), makes("c3", "read", "{}")),
		answers("c1"), fails("c2"), answers("c3", text("  ")))},
	{"ids and names that OpenAI does not take", openAITalk(
		say(eventlog.RoleUser, text("go")), modelSaid("claude-opus-4", makes("call_1|fc_2", "files.read", "{}"), makes(strings.Repeat("i", 41), strings.Repeat("n", 65), "{}")),
		answers("call_1|fc_2", text("a")), answers(strings.Repeat("i", 41), text("b")))},
	{"media of the user", openAITalk(say(eventlog.RoleUser, text("see"), picture, onlinePic, pdf, eventlog.Media{MIMEType: "audio/mpeg", Data: "ID3"},
		eventlog.Media{MIMEType: "image/tiff", Data: "II*\x00"}, eventlog.Media{MIMEType: "application/pdf", URI: "https://example.com/a.pdf"},
		eventlog.Media{URI: "https://example.com/untyped"}, eventlog.Media{MIMEType: "image/png", URI: "file:///a.png"},
		eventlog.Media{MIMEType: "text/csv", Data: "a,b\n1,2\n"}, eventlog.Media{}))},
	{"files of OpenAI's own", openAITalk(say(eventlog.RoleUser, text("see"),
		ownBlock("openai", `{"type":"file","file":{"filename":"a.csv","file_data":"data:text/csv;base64,YSxi"}}`), ownBlock("openai", `{"type":"file","file":{"file_id":"file-1"}}`)))},
	{"media of others", openAITalk(say(eventlog.RoleSystem, text("s"), picture), say(eventlog.RoleUser, text("draw")), modelSaid("gpt-5", picture))},
	{"images in results", openAITalk(
		say(eventlog.RoleUser, text("go")), modelSaid("gpt-5", makes("c1", "shot", "{}"), makes("c2", "read", "{}")),
		answers("c1", text("taken"), picture, onlinePic), answers("c2", pdf, eventlog.Media{MIMEType: "image/tiff", Data: "II*\x00"}), modelSaid("gpt-5", text("seen")))},
	{"reasoning", openAITalk(
		say(eventlog.RoleUser, text("go")),
		modelSaid("gpt-5", eventlog.Thinking{Text: "Plan.", EncryptedContent: "gAAA", Signature: "rs_1"}, text("I look."),
			eventlog.Thinking{EncryptedContent: "gBBB"}, makes("c1", "read", "{}"), eventlog.Thinking{EncryptedContent: "gCCC", Signature: "rs_3"}),
		answers("c1", text("a")),
		modelSaid("gpt-5", eventlog.Thinking{Signature: `{"id":"rs_4","type":"reasoning","summary":[], "encrypted_content":"gDDD"}`}, eventlog.Thinking{EncryptedContent: "gEEE", Signature: "rs_5"}, text("done")))},
	{"reasoning that is not OpenAI's, or not sealed", openAITalk(
		say(eventlog.RoleUser, text("go")),
		modelSaid("claude-opus-4", eventlog.Thinking{Text: "hm", Signature: "sig"}, eventlog.Thinking{RedactedData: "x"}, text("a")),
		modelSaid("gemini-3-pro", eventlog.Thinking{Text: "hm", Signature: "sig"}, text("b")),
		modelSaid("gpt-5", eventlog.Thinking{Text: "hm"}, text("c")),
		modelSaid("claude-opus-4", eventlog.Thinking{EncryptedContent: "e"}),
		modelSaid("gpt-5", eventlog.Thinking{EncryptedContent: "alone"}))},
	{"reasoning that hosts of models sealed", openAITalk(
		say(eventlog.RoleUser, text("go")),
		modelSaid("google/gemini-3-pro", eventlog.Thinking{Text: "Plan.", Signature: `{"reasoning_details":[{"type":"reasoning.text","text":"Plan.","index":0}, {"type":"reasoning.encrypted","data":"ZGF0YQ==","id":"c.1","index":1}]}`},
			text("I look."), ownBlock("openai", `{"extra_content":{"google":{"thought_signature":"c2ln"}}}`), makes("c.1", "read", "{}"),
			ownBlock("openai", `{"provider_specific_fields":{"thought_signature":"c2ln"}}`), makes("c2", "read", "{}"), ownBlock("openai", `{"extra_content":"c2ln"}`), makes("c3", "read", "{}")),
		answers("c.1", text("a")), answers("c2", text("b")), answers("c3", text("c")),
		modelSaid("anthropic/claude-opus-5", eventlog.Thinking{Signature: `{"thinking_blocks":[{"type":"redacted_thinking","data":"d"}]}`}, text("So.")),
		modelSaid("anthropic/claude-opus-5", eventlog.Thinking{Text: "hm", Signature: `{"reasoning_details":[{"type":"thinking"}]}`}, text("a list of other things")),
		modelSaid("anthropic/claude-opus-5", eventlog.Thinking{Signature: `{"reasoning_details":[{"type":"reasoning.encrypted","data":"d"}]}`}))},
	{"a refusal", openAITalk(say(eventlog.RoleUser, text("go")), modelSaid("gpt-5", ownBlock("openai", `{"type":"refusal","refusal":"I can't."}`)),
		modelSaid("gpt-5", text("Well."), ownBlock("openai", `{"type":"refusal","refusal":"No."}`), makes("c1", "read", "{}")), answers("c1", text("a")))},
	{"OpenAI's own items", openAITalk(say(eventlog.RoleUser, text("go")), modelSaid("gpt-5",
		ownBlock("openai", `{"type":"web_search_call", "id":"ws_1","status":"completed","action":{"type":"search","query":"q","queries":["q"]}}`),
		ownBlock("openai", `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"open_page","url":"https://example.com"}}`),
		ownBlock("openai", `{"type":"web_search_call","status":"completed"}`),
		ownBlock("openai", `{"type":"output_text","text":"As said.","annotations":[{"type":"url_citation","url":"https://example.com","title":"t","start_index":0,"end_index":3}]}`),
		ownBlock("openai", `{"type":"computer_call","call_id":"x"}`)))},
	{"an item that was tied to reasoning which is not there", openAITalk(say(eventlog.RoleUser, text("go")), modelSaid("gpt-5", eventlog.Thinking{EncryptedContent: "g"},
		ownBlock("openai", `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search"}}`)))},
	{"an item after reasoning that a reducer left out", func() []render.Message {
		talk := openAITalk(say(eventlog.RoleUser, text("go")), modelSaid("gpt-5",
			ownBlock("openai", `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search"}}`), text("Found.")))
		talk[1].Unreasoned = true
		return talk
	}()},
	{"blocks of others", openAITalk(
		say(eventlog.RoleUser, text("go"), ownBlock("anthropic", `{"type":"document","source":{}}`), ownBlock("openai", `{"type":"image_url","image_url":{"url":"https://example.com/b.png","detail":"low"}}`),
			ownBlock("openai", `{"type":"input_image","image_url":"https://example.com/c.png"}`), ownBlock("openai", `{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0xLjc="}}`)),
		modelSaid("claude-opus-4", ownBlock("anthropic", `{"type":"server_tool_use","id":"srv","name":"web_search","input":{}}`), ownBlock("google", `{"thoughtSignature":"x"}`), ownBlock("", "no JSON")))},
	{"OpenAI's own images", openAITalk(say(eventlog.RoleUser, text("go"),
		ownBlock("openai", `{"type":"input_image","image_url":"https://example.com/a.png","detail":"original"}`),
		ownBlock("openai", `{"type":"input_image","file_id":"file-1"}`), ownBlock("openai", `{"type":"input_image","file_id":"file-2","detail":"low"}`),
		ownBlock("openai", `{"type":"input_image","file_id":"","detail":"low"}`), ownBlock("openai", `{"type":"input_image","file_id":"file-3","detail":"most"}`)))},
	{"members for the block after them", openAITalk(say(eventlog.RoleUser, text("go")), modelSaid("gpt-5",
		ownBlock("openai", `{"phase": "commentary"}`), text("I look."), ownBlock("openai", `{"namespace":"n","async":true}`), makes("c1", "read", "{}"), makes("c2", "read", "{}"),
		ownBlock("openai", `{"phase":"final_answer"}`), ownBlock("openai", `{"type":"refusal","refusal":"No."}`), ownBlock("openai", `{"phase":"final_answer"}`), text(" "), text("Next."),
		ownBlock("openai", `{"phase":"opening"}`), text("More."), ownBlock("anthropic", `{"caller":{"type":"direct"}}`), ownBlock("openai", `{"phase":"commentary"}`)),
		answers("c1", text("a")), answers("c2", text("b")))},
	{"texts with citations", openAITalk(say(eventlog.RoleUser, text("go")), modelSaid("claude-opus-4", ownBlock("anthropic", `{"type":"text","text":"As it says.","citations":[{"type":"char_location"}]}`)))},
	{"a call of a group that used its id before", []render.Message{
		{Role: eventlog.RoleUser, Blocks: []eventlog.Block{text("go")}},
		{Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{makes("c1", "read", "{}")}, Repeats: []uint32{1}},
		{Role: eventlog.RoleTool, Blocks: []eventlog.Block{eventlog.ToolResult{CallID: "c1", Content: []eventlog.Block{text("a")}}}, Repeats: []uint32{1}},
	}},
	{"characters", openAITalk(say(eventlog.RoleUser, text("\x00\x1f\"\\/<>&\u2028é😀\xff")))},
}

// rendered renders messages and puts them together.
func rendered(f *render.Format, messages []render.Message) []render.Encoded {
	var fragments []render.Fragment
	for _, m := range messages {
		fragments = append(fragments, f.Fragments(m)...)
	}
	return f.Join(fragments)
}

var conversionNames = map[render.ConversionKind]string{
	render.Described: "described", render.LeftOut: "left out", render.Renamed: "renamed", render.Moved: "moved", render.Wrapped: "wrapped",
}

// goldenLines is a conversation's lines, with what was converted after each.
func goldenLines(messages []render.Encoded) string {
	var out strings.Builder
	for _, m := range messages {
		mark := "  "
		if m.System {
			mark = "S "
		}
		fmt.Fprintf(&out, "%s%s\n", mark, m.JSON)
		for _, c := range m.Conversions {
			fmt.Fprintf(&out, "    %d.%d %s: %s\n", c.Seq, c.Block, conversionNames[c.Kind], c.What)
		}
	}
	return out.String()
}

func TestOpenAIGolden(t *testing.T) {
	for _, f := range openAIFormats(t) {
		var out strings.Builder
		for _, c := range openAITalks {
			messages := rendered(f, c.messages)
			fmt.Fprintf(&out, "# %s\n%s\n", c.name, goldenLines(messages))
			for _, violation := range rules.Of(f.Name)(linesOf(messages)) {
				t.Errorf("%s, %s: %v", f.Name, c.name, violation)
			}
		}
		path := filepath.Join("testdata", f.Name+".golden")
		if *rewrite {
			if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if out.String() != string(want) {
			got, wanted := strings.Split(out.String(), "\n"), strings.Split(string(want), "\n")
			for i := range got {
				if i >= len(wanted) || got[i] != wanted[i] {
					t.Fatalf("%s, line %d (-rewrite accepts it): %s", path, i+1, got[i])
				}
			}
			t.Fatalf("%s ends too late (-rewrite accepts it)", path)
		}
	}
}
