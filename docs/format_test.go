package docs_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/render"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

type vectors struct {
	Messages []struct {
		Name    string          `json:"name"`
		Message json.RawMessage `json:"message"`
		Line    string          `json:"line"`
	} `json:"messages"`
	Hashes []struct {
		Name  string `json:"name"`
		Lines int    `json:"lines"`
		Hash  string `json:"hash"`
	} `json:"hashes"`
}

func readVectors(t *testing.T) vectors {
	t.Helper()
	text, err := os.ReadFile("testdata/format-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Messages) < 15 || len(v.Hashes) < 3 {
		t.Fatalf("%d messages and %d hashes", len(v.Messages), len(v.Hashes))
	}
	return v
}

func TestMessageVectors(t *testing.T) {
	for _, v := range readVectors(t).Messages {
		t.Run(v.Name, func(t *testing.T) {
			m := &contextdv1.Message{}
			if err := protojson.Unmarshal(v.Message, m); err != nil {
				t.Fatal(err)
			}
			if got := string(render.AppendJSON(nil, domain(t, m))); got != v.Line {
				t.Errorf("encoded as\n%s\nwant\n%s", got, v.Line)
			}
			if !json.Valid([]byte(v.Line)) || strings.ContainsAny(v.Line, "\n\r") {
				t.Error("the line is no JSON on one line")
			}
		})
	}
}

func TestHashVectors(t *testing.T) {
	all := readVectors(t)
	for _, v := range all.Hashes {
		h := records.NewHasher()
		var bytes strings.Builder
		for _, m := range all.Messages[:v.Lines] {
			h.Add([]byte(m.Line))
			bytes.WriteString(m.Line + "\n")
		}
		if got := h.Sum(); got != v.Hash {
			t.Errorf("%s: %s, want %s", v.Name, got, v.Hash)
		}
		sum := sha256.Sum256([]byte(bytes.String()))
		if want := "sha256:" + hex.EncodeToString(sum[:]); want != v.Hash {
			t.Errorf("%s: the vector says %s and its lines give %s", v.Name, v.Hash, want)
		}
	}
}

// Every block and every member that the page's table names is in a vector,
// and the other way round.
func TestVectorsCoverTheTable(t *testing.T) {
	page, err := os.ReadFile("format.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| object | member | value |")
	table, _, _ = strings.Cut(table, "\n\n")
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\|(?: `?(\\w*)`?)? \\| `(\\w+)`").FindAllStringSubmatch(table, -1) {
		named[m[2]] = true
		switch m[1] {
		case "", "message":
		default:
			named[m[1]] = true
		}
	}
	written := map[string]bool{}
	for _, v := range readVectors(t).Messages {
		var m any
		decoder := json.NewDecoder(strings.NewReader(v.Line))
		decoder.UseNumber()
		if err := decoder.Decode(&m); err != nil {
			t.Fatal(err)
		}
		members(m, written)
	}
	for name := range named {
		if !written[name] {
			t.Errorf("no vector has %s", name)
		}
	}
	for name := range written {
		if !named[name] {
			t.Errorf("the table does not name %s", name)
		}
	}
}

// members gathers the names of members; what raw JSON holds is its own.
func members(v any, into map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			members(e, into)
		}
	case map[string]any:
		for name, value := range v {
			into[name] = true
			if name != "arguments_json" && name != "json" {
				members(value, into)
			}
		}
	}
}

// The example at the head of the page is true: its lines have the hash it says.
func TestExample(t *testing.T) {
	page, err := os.ReadFile("format.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```jsonl\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("there is no example")
	}
	sum := sha256.Sum256(block[1])
	if text := hex.EncodeToString(sum[:]); !strings.Contains(string(page), text+"  context.jsonl") {
		t.Errorf("the example hashes to %s, and the page does not say so", text)
	}
}

func domain(t *testing.T, m *contextdv1.Message) render.Message {
	t.Helper()
	roles := map[contextdv1.Role]eventlog.Role{
		contextdv1.Role_ROLE_SYSTEM: eventlog.RoleSystem, contextdv1.Role_ROLE_USER: eventlog.RoleUser,
		contextdv1.Role_ROLE_ASSISTANT: eventlog.RoleAssistant, contextdv1.Role_ROLE_TOOL: eventlog.RoleTool,
	}
	return render.Message{Role: roles[m.GetRole()], Blocks: blocks(t, m.GetBlocks())}
}

func blocks(t *testing.T, all []*contextdv1.Block) []eventlog.Block {
	t.Helper()
	var out []eventlog.Block
	for _, b := range all {
		switch k := b.GetKind().(type) {
		case *contextdv1.Block_Text:
			out = append(out, eventlog.Text{Text: k.Text.GetText()})
		case *contextdv1.Block_Thinking:
			out = append(out, eventlog.Thinking{
				Text: k.Thinking.GetText(), Signature: k.Thinking.GetSignature(),
				RedactedData: string(k.Thinking.GetRedactedData()), EncryptedContent: k.Thinking.GetEncryptedContent(),
			})
		case *contextdv1.Block_ToolCall:
			out = append(out, eventlog.ToolCall{CallID: k.ToolCall.GetCallId(), Name: k.ToolCall.GetName(), Arguments: string(k.ToolCall.GetArgumentsJson())})
		case *contextdv1.Block_ToolResult:
			out = append(out, eventlog.ToolResult{
				CallID: k.ToolResult.GetCallId(), ToolName: k.ToolResult.GetToolName(),
				Content: blocks(t, k.ToolResult.GetContent()), IsError: k.ToolResult.GetIsError(),
			})
		case *contextdv1.Block_Media:
			out = append(out, eventlog.Media{
				MIMEType: k.Media.GetMimeType(), Data: string(k.Media.GetData()), URI: k.Media.GetUri(), Tokens: k.Media.GetTokens(),
			})
		case *contextdv1.Block_Provider:
			out = append(out, eventlog.ProviderBlock{Provider: k.Provider.GetProvider(), JSON: string(k.Provider.GetJson())})
		default:
			t.Fatalf("a vector has a block of kind %T", k)
		}
	}
	return out
}
