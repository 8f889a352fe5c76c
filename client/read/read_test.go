package read_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/client/read"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

var formats = map[string]contextdv1.Format{
	"anthropic":        contextdv1.Format_FORMAT_ANTHROPIC,
	"openai_chat":      contextdv1.Format_FORMAT_OPENAI_CHAT,
	"openai_responses": contextdv1.Format_FORMAT_OPENAI_RESPONSES,
	"gemini":           contextdv1.Format_FORMAT_GEMINI,
}

// What is read of each file in testdata is in the golden file next to it.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.json")
	if err != nil || len(inputs) == 0 {
		t.Fatal(inputs, err)
	}
	for _, path := range inputs {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var read []proto.Message
			if strings.HasSuffix(path, ".response.json") {
				read = response(t, data)
			} else {
				format, _, _ := strings.Cut(filepath.Base(path), ".")
				read = messages(t, formats[format], data)
			}
			var got bytes.Buffer
			for _, m := range read {
				line, err := protojson.Marshal(m)
				if err == nil {
					err = json.Compact(&got, line) // protojson varies its spaces
				}
				if err != nil {
					t.Fatal(err)
				}
				got.WriteByte('\n')
			}
			golden := strings.TrimSuffix(path, ".json") + ".golden"
			if *rewrite {
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("got\n%swant\n%s", &got, want)
			}
		})
	}
}

func response(t *testing.T, body []byte) []proto.Message {
	t.Helper()
	event, err := read.Response(body)
	if err != nil {
		t.Fatal(err)
	}
	used, err := read.Usage(body)
	if err != nil {
		t.Fatal(err)
	}
	return []proto.Message{event, used}
}

func messages(t *testing.T, format contextdv1.Format, data []byte) (out []proto.Message) {
	t.Helper()
	events, err := read.Messages(format, data)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		out = append(out, e)
	}
	return out
}

// What cannot be read is named by its place; the clients in other languages read the same file.
func TestRefused(t *testing.T) {
	for _, test := range []struct {
		format contextdv1.Format
		data   string
		want   string
	}{
		{contextdv1.Format_FORMAT_UNSPECIFIED, `{}`, "format: messages of FORMAT_UNSPECIFIED"},
		{contextdv1.Format_FORMAT_OPENAI_CHAT, `{"role":"user","content":"a"}] {"role":"user","content":"b"}`, "message 1: invalid character ']'"},
		{contextdv1.Format_FORMAT_OPENAI_RESPONSES, `{"role":"user"} {`, "message 1: unexpected EOF"},
	} {
		if _, err := read.Messages(test.format, []byte(test.data)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s is answered %v, want %q", test.data, err, test.want)
		}
	}
	file, err := os.ReadFile("testdata/refused.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(file) {
		var test struct {
			Format, Messages, Wrong string
			At                      int
		}
		if err := json.Unmarshal(line, &test); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("message %d: %s", test.At, test.Wrong)
		if got, err := read.Messages(formats[test.Format], []byte(test.Messages)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s is answered %v, %v, want %q", test.Messages, got, err, want)
		}
	}
	for _, body := range []string{"", "no", `{}`, `[]`, `{"choices":[]}`, `{"candidates":[]}`, `{"type":"message","role":"assistant"}`, `{"object":"response"}`,
		`{"choices":[{"message":{"content":null,"function_call":{"name":"f","arguments":"{}"}}}]}`,
	} {
		if e, err := read.Response([]byte(body)); err == nil {
			t.Errorf("%q is read as %v", body, e)
		}
	}
}

// TestNoJSON: what some parsers take for JSON is refused; the clients in other languages read the same file.
func TestNoJSON(t *testing.T) {
	file, err := os.ReadFile("testdata/no_json.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(file) {
		var data string
		if err := json.Unmarshal(line, &data); err != nil {
			t.Fatal(err)
		}
		for name, format := range formats {
			if got, err := read.Messages(format, []byte(data)); err == nil || !strings.HasPrefix(err.Error(), "message 0: ") {
				t.Errorf("%s: %s is read as %v, %v", name, data, got, err)
			}
		}
		if got, err := read.Response([]byte(data)); err == nil || err.Error() != "the response is no JSON" {
			t.Errorf("%s is read as %v, %v", data, got, err)
		}
	}
}

// What says nothing has no event, and a mark of the byte order before the first message says nothing.
func TestEmpty(t *testing.T) {
	for format, data := range map[string]string{
		"anthropic":        `{"role":"user","content":""} {"role":"user","content":[]}`,
		"openai_chat":      `{"role":"assistant","content":null} {"role":"assistant"}`,
		"openai_responses": `{"type":"reasoning","summary":[]} {"role":"user","content":""}`,
		"gemini":           `{"role":"model"} {"role":"model","parts":null} {"parts":[]} {} {"systemInstruction":{}}`,
	} {
		if got, err := read.Messages(formats[format], []byte("\xef\xbb\xbf"+data+"\r\n")); err != nil || len(got) > 0 {
			t.Errorf("%s: %s is read as %v, %v", format, data, got, err)
		}
	}
	for _, data := range []string{"", "\xef\xbb\xbf", "[]\n[]"} {
		if got, err := read.Messages(contextdv1.Format_FORMAT_GEMINI, []byte(data)); err != nil || len(got) > 0 {
			t.Errorf("%q is read as %v, %v", data, got, err)
		}
	}
	body := []byte("\xef\xbb\xbf" + `{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":5}}`)
	if got, err := read.Response(body); err != nil || len(got.GetMessage().GetBlocks()) != 1 {
		t.Errorf("a response is read as %v, %v", got, err)
	}
	if got, err := read.Usage(body); err != nil || got.GetInputTokens() != 5 {
		t.Errorf("its usage is read as %v, %v", got, err)
	}
}

// A call and its result have the same id, without a signature; the clients in other languages read the same file.
func TestIDsOfCalls(t *testing.T) {
	file, err := os.ReadFile("testdata/call_ids.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(file) {
		var test struct{ Given, ID, Signature string }
		if err := json.Unmarshal(line, &test); err != nil {
			t.Fatal(err)
		}
		given, err := json.Marshal(test.Given)
		if err != nil {
			t.Fatal(err)
		}
		call, result := messages(t, contextdv1.Format_FORMAT_OPENAI_CHAT, fmt.Appendf(nil, `{"role":"assistant","tool_calls":[{"id":%s,"function":{"name":"f"}}]}`, given)),
			messages(t, contextdv1.Format_FORMAT_OPENAI_CHAT, fmt.Appendf(nil, `{"role":"tool","tool_call_id":%s,"content":"ok"}`, given))
		blocks := append(blocksOf(call), blocksOf(result)...)
		var signed string
		if len(blocks) == 3 {
			signed, blocks = string(blocks[0].GetProvider().GetJson()), blocks[1:]
		}
		want := ""
		if test.Signature != "" {
			want = fmt.Sprintf(`{"provider_specific_fields":{"thought_signature":%q}}`, test.Signature)
		}
		if len(blocks) != 2 || blocks[0].GetToolCall().GetCallId() != test.ID || blocks[1].GetToolResult().GetCallId() != test.ID || signed != want || read.CallID(test.Given) != test.ID {
			t.Errorf("%q is read as %v after %q", test.Given, blocks, signed)
		}
	}
}

func blocksOf(events []proto.Message) (out []*contextdv1.Block) {
	for _, e := range events {
		if event, ok := e.(*contextdv1.Event); ok {
			out = append(out, event.GetMessage().GetBlocks()...)
		}
	}
	return out
}

// FuzzRead: whatever comes is read or refused.
func FuzzRead(f *testing.F) {
	inputs, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range inputs {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if e, err := read.Response(data); err == nil && e.GetKind() == nil {
			t.Error("a response is no event")
		}
		_, _ = read.Usage(data)
		for _, format := range formats {
			events, err := read.Messages(format, data)
			if err != nil {
				continue
			}
			for _, e := range events {
				if len(e.GetMessage().GetBlocks()) == 0 {
					t.Errorf("%s gives an event without content", format)
				}
			}
		}
	})
}
