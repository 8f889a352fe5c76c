package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/client/read"
	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestSealedChatMessages: what a host sealed in a message of Chat Completions comes back with the bytes that it had, through
// the client's reader, the API and the log's values.
func TestSealedChatMessages(t *testing.T) {
	format, _ := render.FormatNamed("openai_chat")
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SampledFrom([]string{`""`, `"a"`, `"\u00e9\/\"\\n"`, `"é\u2028"`, `"\ud83d\ude00"`, `"{\"id\":\"c1\"}"`, `null`})
		seals := rapid.SampledFrom([]string{`"c2ln"`, `"a+/=_-"`, `"\u0061"`})
		element := func(kind string, members ...string) string {
			out := fmt.Sprintf(`{"type":%q`, kind)
			for _, name := range members {
				out += fmt.Sprintf(`,%q:%s`, name, texts.Draw(t, name))
			}
			return out + rapid.SampledFrom([]string{`}`, `,"index":0}`, `,"n":1.0,"big":9007199254740993,"of":{"b":[],"a":null}}`}).Draw(t, "more")
		}
		list := func(name string, others ...string) string {
			sealed := strings.Replace(others[0], "}", `,"signature":`+seals.Draw(t, "seal")+`}`, 1)
			at := rapid.IntRange(0, len(others)).Draw(t, "at")
			all := append(append(append([]string{}, others[:at]...), sealed), others[at:]...)
			return fmt.Sprintf(`%q:[%s]`, name, strings.Join(all, ","))
		}
		var members []string
		if rapid.Bool().Draw(t, "details") {
			members = append(members, list("reasoning_details", `{"type":"reasoning.text"}`, element("reasoning.summary", "summary", "id", "format"), element("reasoning.encrypted", "data")))
		}
		if rapid.Bool().Draw(t, "blocks") {
			members = append(members, list("thinking_blocks", `{"type":"thinking"}`, element("thinking", "thinking"), element("redacted_thinking", "data")))
		}
		beside := rapid.SampledFrom([]string{"", `,"extra_content":{"google":{"thought_signature":"c2ln","n":1.0}}`, `,"provider_specific_fields":{"thought_signature":"\u0061"}`}).Draw(t, "beside")
		call := `{"id":"c1","type":"function","function":{"name":"read","arguments":"{}"}` + beside + `}`
		message := `{"role":"assistant","content":"so",` + strings.Join(append(members, `"tool_calls":[`+call+`]}`), ",")
		events, err := read.Messages(contextdv1.Format_FORMAT_OPENAI_CHAT, []byte(message))
		if err != nil || len(events) != 1 {
			t.Fatalf("%s: %d events, %v", message, len(events), err)
		}
		m, err := wire.MessageToDomain(events[0].GetMessage())
		if err != nil {
			t.Fatal(err)
		}
		got := format.Join(format.Fragments(render.Message{Role: m.Role, Blocks: m.Blocks}))
		if len(got) != 1 || string(got[0].JSON) != message {
			t.Fatalf("got  %s\nwant %s", got[0].JSON, message)
		}
		for _, v := range rules.Of(format.Name)([][]byte{got[0].JSON, []byte(`{"role":"tool","tool_call_id":"c1","content":""}`)}) {
			t.Errorf("%v: %s", v, message)
		}
		// Whitespace between tokens goes, and nothing else.
		var spaced bytes.Buffer
		if err := json.Indent(&spaced, []byte(message), "", " "); err != nil {
			t.Fatal(err)
		}
		events, err = read.Messages(contextdv1.Format_FORMAT_OPENAI_CHAT, spaced.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if m, err = wire.MessageToDomain(events[0].GetMessage()); err != nil {
			t.Fatal(err)
		}
		if again := format.Join(format.Fragments(render.Message{Role: m.Role, Blocks: m.Blocks})); string(again[0].JSON) != message {
			t.Fatalf("with whitespace it is %s, and without %s", again[0].JSON, message)
		}
	})
}
