package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/render/rules"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// writtenArguments are arguments as models write them, and as they fail to.
func writtenArguments() []string {
	return []string{
		`{}`, `{"a":1.0,"b":1e400,"c":9223372036854775808,"d":-0,"e":1E+2}`, `{"b":1,"a":2,"b":3}`, `{"s":"\ud800","t":"\u0041\/"}`,
		`{ "a b" : [ 1 , 2 ] }`, `{"deep":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`, `{"":{"":null}}`, `{"é":"日本 😀  "}`,
		`[1,2]`, `"text"`, `18446744073709551616`, `null`, ` [ 1 , 2 ] `, "{\n}\n",
		"", " ", "\n\t", `{"a":`, `{"path": "main.go", "text": "`, `plain words`, "two\nlines", `{"a":1}}`, `{} {}`, `{"a":1} trailing`, `{"a":NaN}`, `{a:1}`, `{'a':'b'}`,
		"\ufeff{}", "\x00", "{\"a\":\"\x00\"}", "{\"a\":\"\t\"}", "\u2028</script>\u2029", "```json\n{}\n```", `<|endoftext|>`, `\`, `"`, `{"a":"\ud8`,
		strings.Repeat("[", 9500) + strings.Repeat("]", 9500), strings.Repeat("{\"a\":", 20_000), strings.Repeat("[", 12_000),
		`{"raw_arguments":"x"}`, `{"raw_arguments":"{\"a\":"}`, `{"raw_arguments":1}`, "[contextd: 1 group]", "\xff", "{\"a\":\"\xed\xa0\x80\"}",
	}
}

// FuzzArgumentsInEveryFormat appends a call with anything as its arguments and finds it in
// the log and in every format: an object with the same bytes but for whitespace between
// tokens where the format carries JSON, and the very same text where it carries a string.
func FuzzArgumentsInEveryFormat(f *testing.F) {
	for _, seed := range writtenArguments() {
		f.Add(seed)
	}
	a := serve(f, memlog.New())
	var sessions atomic.Int64
	f.Fuzz(func(t *testing.T, arguments string) {
		if len(arguments) > 1<<17 {
			return
		}
		id := fmt.Sprint("s", sessions.Add(1))
		if !a.called(t, id, arguments) {
			return
		}
		for number, name := range contextdv1.Format_name {
			format := contextdv1.Format(number)
			got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: id, Format: format, Budget: &contextdv1.Budget{MaxTokens: 1 << 20}})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			lines := (&held{got.messages}).lines()
			if check := rules.Of(formatOf(t, format).Name); check != nil {
				for _, violation := range check(lines) {
					t.Errorf("%s: %v", name, violation)
				}
			}
			switch format {
			case contextdv1.Format_FORMAT_OPENAI_CHAT, contextdv1.Format_FORMAT_OPENAI_RESPONSES:
				if want := orNone(arguments); !saidAsString(got.messages, want) {
					t.Errorf("%s: no message has the string %q", name, want)
				}
				continue
			}
			all := bytes.Join(lines, []byte("\n"))
			want, or := asMembers(t, format, arguments)
			if !bytes.Contains(all, []byte(want)) && (or == "" || !bytes.Contains(all, []byte(or))) {
				t.Errorf("%s: neither %s nor %s is in %s", name, want, or, all)
			}
		}
	})
}

// called appends a call with the arguments and its result, and finds both in the log.
// What is no text is refused, by the name of the field.
func (a *api) called(t *testing.T, session, arguments string) bool {
	t.Helper()
	events := []*contextdv1.Event{
		user("Run it."), message(contextdv1.Role_ROLE_ASSISTANT, call("call_1", "run", arguments)),
		message(contextdv1.Role_ROLE_TOOL, result("call_1", text("arguments: not understood"))), user("Again."),
	}
	_, err := a.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: session, Events: events})
	if !utf8.ValidString(arguments) {
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "events[1].message.blocks[0].tool_call.arguments_json") {
			t.Errorf("%q: %v", arguments, err)
		}
		return false
	}
	if err != nil {
		t.Fatalf("%q is refused: %v", arguments, err)
	}
	if kept := a.callsOf(t, session); len(kept) != 1 || kept[0] != arguments {
		t.Errorf("the log has %q for %q", kept, arguments)
	}
	return true
}

// callsOf are the arguments of the calls in a log.
func (a *api) callsOf(t *testing.T, session string) []string {
	t.Helper()
	var out []string
	for _, e := range a.read(t, session) {
		for _, b := range e.GetMessage().GetBlocks() {
			if c := b.GetToolCall(); c != nil {
				out = append(out, string(c.GetArgumentsJson()))
			}
		}
	}
	return out
}

func orNone(arguments string) string {
	if arguments == "" {
		return "{}"
	}
	return arguments
}

// asMembers is how arguments appear in a format that carries JSON; encoding/json is the
// oracle of what is JSON. An object may also be a text, if the provider cannot read it, which
// the format's Check refuses.
func asMembers(t *testing.T, format contextdv1.Format, arguments string) (want, or string) {
	t.Helper()
	var compact bytes.Buffer
	valid := json.Compact(&compact, []byte(arguments)) == nil && strings.Count(arguments, "[")+strings.Count(arguments, "{") <= 9000
	quoted := &bytes.Buffer{}
	encoder := json.NewEncoder(quoted)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(arguments); err != nil {
		t.Fatal(err)
	}
	asText := strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(strings.TrimSuffix(quoted.String(), "\n"))
	if strings.Contains(arguments, `\u202`) {
		asText = "" // which of them was written is not known
	}
	switch {
	case format == contextdv1.Format_FORMAT_UNSPECIFIED && arguments == "":
		return `"name":"run"}`, ""
	case format == contextdv1.Format_FORMAT_UNSPECIFIED && valid:
		return `"arguments_json":` + compact.String() + `}`, ""
	case format == contextdv1.Format_FORMAT_UNSPECIFIED:
		return `"arguments_text":` + asText, ""
	case arguments == "":
		return `:{}}`, ""
	case valid && compact.Bytes()[0] == '{' && strings.Contains(strings.ToLower(arguments), `\ud`):
		return `:{`, "" // perhaps half of a surrogate pair, which the format's Check refuses
	case valid && compact.Bytes()[0] == '{':
		return `:` + compact.String() + `}`, `:{"raw_arguments":` + asText
	default:
		return `:{"raw_arguments":` + asText, ""
	}
}

// TestMalformedArgumentsDownstream: whatever the arguments are, every policy and every
// harness takes it, and a harness's transcript gives it back.
func TestMalformedArgumentsDownstream(t *testing.T) {
	policies := []*contextdv1.ProjectionPolicy{
		nil, {Policy: "raw"}, {Policy: "full"}, {Policy: "harness_view"}, {Policy: "clean_tool_repair"}, {Policy: "squash_failed_calls"},
		{Policy: "summary_prefix", Summary: "It ran."}, {Policy: "reachability_gc"},
		{Policy: "custom", Expression: `age > 1 ? "stub" : result_chars > 10 ? "clip" : "keep"`},
	}
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		for i, arguments := range writtenArguments() {
			id := fmt.Sprint("s", i)
			if !a.called(t, id, arguments) {
				continue
			}
			a.append(t, id, longSession(20, 200)...)
			for _, policy := range policies {
				for _, tokens := range []uint64{700, 4000, 1 << 20} {
					request := &contextdv1.AssembleContextRequest{
						SessionId: id, Budget: &contextdv1.Budget{MaxTokens: tokens}, Policy: &contextdv1.Policy{Projection: policy},
					}
					got, err := a.assemble(t, request)
					if status.Code(err) == codes.FailedPrecondition {
						continue // arguments that no budget of this size holds
					}
					if err != nil {
						t.Fatalf("%q under %v in %d tokens: %v", arguments, policy, tokens, err)
					}
					for _, m := range got.messages {
						if !json.Valid(m.GetJson()) {
							t.Errorf("%q: no JSON: %s", arguments, m.GetJson())
						}
					}
				}
			}
			for _, harness := range []string{"claude", "codex", "opencode", "pi"} {
				a.throughHarness(t, id, harness, arguments)
			}
		}
	})
}

// throughHarness exports a session and imports it again.
func (a *api) throughHarness(t *testing.T, id, harness, arguments string) {
	t.Helper()
	data, _, err := a.export(t, &contextdv1.ExportTranscriptRequest{SessionId: id, Harness: harness})
	if err != nil {
		t.Fatalf("%q for %s: %v", arguments, harness, err)
	}
	back := id + "/" + harness
	if _, err := a.importAs(t, back, harness, string(data)); err != nil {
		t.Fatalf("%q from %s: %v", arguments, harness, err)
	}
	want := orNone(arguments)
	got := a.callsOf(t, back)
	if len(got) == 0 {
		t.Fatalf("%s lost the calls", harness)
	}
	var compact, spaced bytes.Buffer
	if json.Compact(&spaced, []byte(got[0])) == nil && json.Compact(&compact, []byte(want)) == nil && eventlog.IsJSONObject(want) {
		want, got[0] = compact.String(), spaced.String() // spaces between tokens may go
	}
	if got[0] != want {
		t.Errorf("%s: %.300q came back as %.300q", harness, want, got[0])
	}
}

// saidAsString looks for a call whose arguments are a string.
func saidAsString(messages []*contextdv1.RenderedMessage, arguments string) bool {
	for _, m := range messages {
		var item struct {
			Arguments *string `json:"arguments"`
			ToolCalls []struct {
				Function struct {
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		}
		if json.Unmarshal(m.GetJson(), &item) != nil {
			continue
		}
		if item.Arguments != nil && *item.Arguments == arguments {
			return true
		}
		for _, c := range item.ToolCalls {
			if c.Function.Arguments == arguments {
				return true
			}
		}
	}
	return false
}
