package render_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

var (
	someTexts   = []string{"", " ", "\n\t", "\x1f", "a", "two words \n", "\"\\\u2028", "\xff", strings.Repeat("long ", 40)}
	someModels  = []string{"", "gpt-5", "claude-opus-4", "gemini-3-pro", "claude-gemini"}
	someIDs     = []string{"c1", "c2", "toolu_01", "call.1:2", strings.Repeat("i", 50), "é", ""}
	someNames   = []string{"read", "mcp__a.b:c", "1st", "-x", "", strings.Repeat("n", 130), strings.Repeat("é", 65), "a b", "a_b"}
	someJSON    = []string{"", " ", "{}", `{"a": 1.0, "a": 1e400}`, `{"a":`, `[9223372036854775808]`, `"\ud800"`, "null", `{"a":"\ud83d"}`, "\xff", "{\"a\":\"\xff\"}", strings.Repeat("[", 9001) + strings.Repeat("]", 9001), nested(30, "[", "]"), nested(31, "[", "]"), nested(191, `{"a":`, "}"), `{"a":1,"a":2}`}
	someNatives = []string{
		`{"type":"text","text":"t","citations":[]}`, `{"type":"text","text":" "}`, `{"type":"output_text","text":"t"}`, `{"type":"refusal","refusal":"no"}`,
		`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`, `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`,
		`{"type":"server_tool_use","id":"srvtoolu_2","name":"web_search","input":{}}`, `{"type":"mcp_tool_use","id":"no","name":"n","input":{},"server_name":"s"}`,
		`{"type":"tool_use","id":"c1","name":"n","input":{}}`, `{"type":"tool_result","tool_use_id":"c1"}`, `{"type":"thinking","thinking":"t"}`, `{"type":"tool_reference","tool_name":"t"}`,
		`{"type":"search_result","source":"s","title":"t","content":[]}`, `{"type":"image","source":{"type":"file","file_id":"f"}}`,
		`{"thoughtSignature":"c2ln"}`, `{"thoughtSignature":"no base64"}`, `{"text":"t"}`, `{"text":" "}`, `{"functionCall":{"name":"f","args":{}}}`, `{"functionResponse":{}}`,
		`{"fileData":{"mimeType":"video/mp4","fileUri":"https://youtu.be/x"},"videoMetadata":{}}`, `{"text":"t","inlineData":{}}`, `{"new":1}`,
		`{"executableCode":{"language":"PYTHON","code":"1"}}`, `{"codeExecutionResult":{"outcome":"OUTCOME_OK"}}`,
		`no JSON`, ``, `[]`, `null`, `7`, "{\"type\":\"text\",\"text\":\"\xff\"}",
		`{"TYPE":"text","text":"t"}`, `{"type":"text","text":"t","more":1}`, `{"type":"text","text":"t","citations":[{"type":"page_location"}]}`, `{"type":"image"}`,
		`{"extra_content":{"google":{"thought_signature":"c2ln"}}}`, `{"extra_content":{"google":{"thought_signature":"no base64"}}}`, `{"extra_content":"s","provider_specific_fields":{"thought_signature":"s"}}`,
		`{"type":"server_tool_use","id":"srvtoolu_3","name":"advisor","input":{}}`, `{"type":"advisor_tool_result","tool_use_id":"srvtoolu_3","content":{}}`,
		`{"type":"web_fetch_tool_result","tool_use_id":"srvtoolu_1","content":[]}`, `{"type":"search_result","source":"s","title":"t","content":[],"cache_control":{"type":"ephemeral"}}`,
		`{"type":"document","source":{"type":"file","file_id":"f"},"citations":{"enabled":true}}`, `{"type":"document","source":{"type":"file","file_id":"f"},"citations":{"enabled":false}}`,
		`{"type":"search_result","source":"s","title":"t","content":[],"citations":{"enabled":true}}`,
		`{"fileData":5}`, `{"fileData":{"fileUri":"nope"}}`, `{"executableCode":5}`, `{"codeExecutionResult":{"outcome":"nope"}}`, `{"text":"t","thoughtSignature":"c2ln"}`, `{"text":"t","partMetadata":{"a":1,"a":2}}`,
	}
	someThinking = []eventlog.Thinking{
		{}, {Text: "open"}, {Text: "signed", Signature: "c2ln"}, {Signature: "b25seQ=="}, {Text: "sealed", Signature: "no base64"}, {RedactedData: "cmVk"}, {RedactedData: "\x00\xff"},
		{EncryptedContent: "gA"}, {Text: "t", Signature: "cw==", RedactedData: "r", EncryptedContent: "e"}, {Text: "t", RedactedData: "r"},
		{Text: "hosted", Signature: `{"reasoning_details":[{"type":"reasoning.encrypted","data":"d","id":"c1"}]}`}, {Signature: `{"thinking_blocks": [{"type":"thinking","thinking":"t","signature":"s"}]}`},
		{Text: "hosted", Signature: `{"reasoning_details":[{"type":"thinking"}]}`}, {Signature: `{"thinking_blocks":[]}`}, {Signature: `{"thinking_blocks":`},
	}
)

func someMedia(t *rapid.T) eventlog.Block {
	return eventlog.Media{
		MIMEType: rapid.SampledFrom([]string{"", "image/png", "IMAGE/JPG", "image/tiff", "image/heic", "application/pdf", "audio/wav", "text/plain; charset=utf-8", "\xff"}).Draw(t, "type"),
		Data:     rapid.SampledFrom([]string{"", png, "GIF89a", "plain", " ", "\xfe"}).Draw(t, "data"),
		URI:      rapid.SampledFrom([]string{"", "https://example.com/a.png", "https://example.com/a.pdf", "http://example.com/a.png", "gs://b/a.png", "https://example.com/a"}).Draw(t, "uri"),
	}
}

func someContent(t *rapid.T, more ...func(*rapid.T) eventlog.Block) []eventlog.Block {
	kinds := append([]func(*rapid.T) eventlog.Block{
		func(t *rapid.T) eventlog.Block { return text(rapid.SampledFrom(someTexts).Draw(t, "text")) },
		func(t *rapid.T) eventlog.Block {
			return native(rapid.SampledFrom([]string{"anthropic", "anthropic", "google", "google", "openai", ""}).Draw(t, "provider"), rapid.SampledFrom(someNatives).Draw(t, "json"))
		},
		someMedia,
	}, more...)
	var out []eventlog.Block
	for range rapid.IntRange(0, 4).Draw(t, "blocks") {
		out = append(out, rapid.SampledFrom(kinds).Draw(t, "kind")(t))
	}
	return out
}

// someTurn draws an assistant's message with the results of its calls after it, in
// their order. Calls of a turn may have one id, as where one was answered before the next was
// made; made counts those of the log.
func someTurn(t *rapid.T, made map[string]uint32) []render.Message {
	m := render.Message{Role: eventlog.RoleAssistant, Model: rapid.SampledFrom(someModels).Draw(t, "model")}
	m.Blocks = someContent(t,
		func(t *rapid.T) eventlog.Block { return rapid.SampledFrom(someThinking).Draw(t, "thinking") },
		func(t *rapid.T) eventlog.Block {
			c := eventlog.ToolCall{CallID: rapid.SampledFrom(someIDs).Draw(t, "id"), Name: rapid.SampledFrom(someNames).Draw(t, "name"), Arguments: rapid.SampledFrom(someJSON).Draw(t, "arguments")}
			return c
		})
	m.Repeats = repeatsOf(m.Blocks, made)
	out := []render.Message{m}
	for i, b := range m.Blocks {
		if c, ok := b.(eventlog.ToolCall); ok {
			out = append(out, render.Message{Role: eventlog.RoleTool, Repeats: m.Repeats[i : i+1], Blocks: []eventlog.Block{eventlog.ToolResult{
				CallID: c.CallID, ToolName: rapid.SampledFrom([]string{c.Name, c.Name, "other"}).Draw(t, "tool"),
				Content: someContent(t), IsError: rapid.Bool().Draw(t, "failed"),
			}}})
		}
	}
	return out
}

// repeatsOf says how often each block's call id was used before, and counts it in made.
func repeatsOf(blocks []eventlog.Block, made map[string]uint32) []uint32 {
	out := make([]uint32, len(blocks))
	for i, b := range blocks {
		if c, ok := b.(eventlog.ToolCall); ok {
			out[i] = made[c.CallID]
			made[c.CallID]++
		}
	}
	return out
}

// someGroups draws a conversation as it is laid out, in groups.
func someGroups(t *rapid.T) [][]render.Message {
	made := map[string]uint32{}
	var groups [][]render.Message
	seq := eventlog.Seq(0)
	for range rapid.IntRange(0, 8).Draw(t, "groups") {
		var g []render.Message
		switch rapid.IntRange(0, 4).Draw(t, "group") {
		case 0:
			g = []render.Message{{Role: eventlog.RoleSystem, Blocks: someContent(t)}}
		case 1, 2:
			g = []render.Message{{Role: eventlog.RoleUser, Blocks: someContent(t)}}
		default:
			g = someTurn(t, made)
		}
		for i := range g {
			seq++
			g[i] = placed(seq, g[i])
			g[i].Origin, g[i].Tokens = render.Verbatim, 7
		}
		groups = append(groups, g)
	}
	if rapid.Bool().Draw(t, "reminded") {
		groups = append(groups, []render.Message{reminding(rapid.SampledFrom([]eventlog.Role{eventlog.RoleSystem, eventlog.RoleUser, eventlog.RoleAssistant}).Draw(t, "hint"), "run the tests")})
	}
	return groups
}

// TestProviderFormatsKeepTheRules: whatever a conversation holds, it comes out valid,
// the same each time, and grows at its end.
func TestProviderFormatsKeepTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups, check := someGroups(t), rules.Of
		if rapid.Bool().Draw(t, "returning") {
			check = rules.OfReturning
			for _, g := range groups {
				for i := range g {
					g[i].ReturnReasoning = true
				}
			}
		}
		for _, f := range providerFormats() {
			var messages []render.Message
			var before []render.Encoded
			count := 0
			for _, g := range groups {
				messages = append(messages, g...)
				got := joined(f, messages)
				if n := described(f, messages); n != count {
					before, count = nil, n
				}
				for _, v := range check(f.Name)(linesOf(got)) {
					t.Fatalf("%s: %v\n%s", f.Name, v, bytes.Join(linesOf(got), []byte("\n")))
				}
				for i := 0; i+1 < len(before); i++ {
					if i >= len(got) || !bytes.Equal(before[i].JSON, got[i].JSON) {
						t.Fatalf("%s: message %d of %d changed as the context grew", f.Name, i, len(before))
					}
				}
				before = got
			}
			again := joined(f, messages)
			if !bytes.Equal(bytes.Join(linesOf(again), nil), bytes.Join(linesOf(before), nil)) {
				t.Fatalf("%s: other bytes for the same messages", f.Name)
			}
			checkAccounts(t, f, messages, before)
			checkSeals(t, f, messages, before)
		}
	})
}

// checkAccounts: each message's tokens, blocks and events are counted once, but for
// those of messages of which nothing is said; what was converted is reported even of them.
func checkAccounts(t *rapid.T, f *render.Format, messages []render.Message, got []render.Encoded) {
	var tokens uint64
	var seqs, want []eventlog.Seq
	told := map[render.Conversion]bool{}
	for _, m := range got {
		for _, c := range m.Conversions {
			told[c] = true
		}
	}
	for _, m := range messages {
		fragments := f.Fragments(m)
		if slices.ContainsFunc(fragments, func(f render.Fragment) bool { return f.JSON != nil }) {
			tokens += m.Tokens
			want = append(want, m.Seqs...)
		}
		for _, fragment := range fragments {
			for _, c := range fragment.Conversions {
				if len(got) > 0 && !told[c] && !waits(m, c, got) {
					t.Fatalf("%s: nobody tells of %+v", f.Name, c)
				}
			}
		}
	}
	for _, m := range got {
		tokens -= m.Tokens
		seqs = append(seqs, m.Seqs...)
	}
	seqs, want = slices.Sorted(slices.Values(seqs)), slices.Sorted(slices.Values(want)) // reminders come after later events
	if tokens != 0 || fmt.Sprint(seqs) != fmt.Sprint(want) {
		t.Fatalf("%s: %d tokens are missing; events %v instead of %v", f.Name, int64(tokens), seqs, want)
	}
}

// waits reports whether what a message alone describes went out after all, as the next message answers it or the API will.
func waits(m render.Message, c render.Conversion, got []render.Encoded) bool {
	b, _ := m.Blocks[c.Block].(eventlog.ProviderBlock)
	return c.Kind == render.Described && b.JSON != "" && bytes.Contains(bytes.Join(linesOf(got), nil), []byte(b.JSON))
}

// checkSeals: a seal of the provider's own goes out as it is, with something after it,
// and no other does.
func checkSeals(t *rapid.T, f *render.Format, messages []render.Message, got []render.Encoded) {
	all := string(bytes.Join(linesOf(got), nil))
	mine := map[string]string{"anthropic": "claude-opus-4", "gemini": "gemini-3-pro"}[f.Name]
	for _, m := range messages {
		for i, b := range m.Blocks {
			thinking, ok := b.(eventlog.Thinking)
			if !ok || thinking.RedactedData != "" || thinking.EncryptedContent != "" || thinking.Signature != "c2ln" || m.Model != mine || i+1 == len(m.Blocks) {
				continue
			}
			if _, follows := m.Blocks[i+1].(eventlog.ToolCall); !follows {
				continue
			}
			seal := map[string]string{"anthropic": `"thinking":"signed","signature":"c2ln"`, "gemini": `"thoughtSignature":"c2ln"`}[f.Name]
			if !strings.Contains(all, seal) && (f.Name == "gemini" || !slices.ContainsFunc(m.Blocks, notAnthropics)) {
				t.Fatalf("%s: a seal is missing: %s", f.Name, all)
			}
		}
	}
}

// notAnthropics reports whether a block is reasoning sealed as Anthropic does not, with which
// no other of its message goes out.
func notAnthropics(b eventlog.Block) bool {
	t, _ := b.(eventlog.Thinking)
	return t.EncryptedContent != "" || t.RedactedData != "" && (t.Signature != "" || t.Text != "")
}

// TestToolNamesStayApart: a provider's names are valid, and no two tools have one.
func TestToolNamesStayApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z_.:é-]{1,3}`), rapid.StringMatching(`[a-zé]{60,130}`)), 2, 2, rapid.ID[string]).Draw(t, "names")
		for _, f := range providerFormats() {
			var seen [][]byte
			for _, name := range names {
				got := f.Fragments(by("", eventlog.ToolCall{CallID: "c", Name: name}))[0]
				if utf8.ValidString(name) && bytes.Contains(got.JSON, []byte(`"name":"`+name+`"`)) != (len(got.Conversions) == 0) {
					t.Fatalf("%s: %q became %s without a word", f.Name, name, got.JSON)
				}
				seen = append(seen, got.JSON)
			}
			if bytes.Equal(seen[0], seen[1]) {
				t.Fatalf("%s: %q and %q are one: %s", f.Name, names[0], names[1], seen[0])
			}
		}
	})
}

// TestAnyBlocks: no blocks, in whatever role and order, make a format panic or write
// what is no JSON.
func TestAnyBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var messages []render.Message
		for range rapid.IntRange(0, 5).Draw(t, "messages") {
			messages = append(messages, render.Message{
				Role: eventlog.Role(rapid.IntRange(0, 5).Draw(t, "role")), Model: rapid.SampledFrom(someModels).Draw(t, "model"),
				Blocks: rapid.SliceOfN(drawBlock(1), 0, 4).Draw(t, "blocks"),
			})
		}
		for _, f := range providerFormats() {
			for _, m := range joined(f, messages) {
				if !json.Valid(m.JSON) || !utf8.Valid(m.JSON) || bytes.ContainsAny(m.JSON, "\n\r") {
					t.Fatalf("%s: no JSON on one line: %q", f.Name, m.JSON)
				}
			}
		}
	})
}

// TestMediaSurvives: the bytes of an image come out as they went in.
func TestMediaSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := png + string(rapid.SliceOf(rapid.Byte()).Draw(t, "data"))
		for _, f := range providerFormats() {
			got := f.Fragments(user(eventlog.Media{MIMEType: "image/png", Data: data}))[0].JSON
			if !bytes.Contains(got, []byte(`"data":"`+base64.StdEncoding.EncodeToString([]byte(data))+`"`)) {
				t.Fatalf("%s: %s", f.Name, got)
			}
		}
	})
}
