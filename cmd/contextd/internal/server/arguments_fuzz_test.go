package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/log/memlog"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// FuzzArgumentsInEveryFormat appends a call with any JSON as its arguments and finds them
// in every format: the same bytes but for whitespace between tokens where the format
// carries JSON, and the very same where it carries a string.
func FuzzArgumentsInEveryFormat(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1.0,"b":1e400,"c":9223372036854775808,"d":-0,"e":1E+2}`, `{"b":1,"a":2,"b":3}`, `{"s":"\ud800","t":"\u0041\/"}`,
		`{ "a b" : [ 1 , 2 ] }`, `{"deep":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`, `{"":{"":null}}`, `{"é":"日本 😀  "}`,
		`[1,2]`, `"text"`, `18446744073709551616`, `null`,
	} {
		f.Add(seed)
	}
	a := serve(f, memlog.New())
	var sessions atomic.Int64
	f.Fuzz(func(t *testing.T, arguments string) {
		var compact bytes.Buffer
		if len(arguments) > 1<<16 || json.Compact(&compact, []byte(arguments)) != nil {
			return // no JSON
		}
		id := fmt.Sprint("s", sessions.Add(1))
		asked := message(contextdv1.Role_ROLE_ASSISTANT, call("call_1", "run", arguments))
		if _, err := a.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: id, Events: []*contextdv1.Event{user("Run it."), asked}}); err != nil {
			if utf8.ValidString(arguments) {
				t.Fatalf("%q is refused: %v", arguments, err)
			}
			return
		}
		object := strings.HasPrefix(compact.String(), "{")
		for number, name := range contextdv1.Format_name {
			format := contextdv1.Format(number)
			got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: id, Format: format})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want := compact.String()
			switch format {
			case contextdv1.Format_FORMAT_OPENAI_CHAT, contextdv1.Format_FORMAT_OPENAI_RESPONSES:
				if !saidAsString(got.messages, arguments) {
					t.Errorf("%s: no message has the string %q", name, arguments)
				}
				continue
			case contextdv1.Format_FORMAT_ANTHROPIC, contextdv1.Format_FORMAT_GEMINI:
				if !object {
					want = `{"_arguments":` + want + `}`
				}
			}
			if all := bytes.Join((&held{got.messages}).lines(), []byte("\n")); !bytes.Contains(all, []byte(want)) {
				t.Errorf("%s: %s is not in %s", name, want, all)
			}
		}
	})
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
