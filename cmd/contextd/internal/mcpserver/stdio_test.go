package mcpserver_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/cmd/contextd/internal/mcpserver"
)

const (
	begin = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	answered = `"text":"s recall {\"pointer\":\"ctx:1.0\"}"`
)

// TestStdio: an invalid line gets an error, and later lines are answered as if it had not been there. All
// requests are answered although the input has ended.
func TestStdio(t *testing.T) {
	for name, c := range map[string]struct{ line, answer string }{
		"no JSON":            {`{"jsonrpc":`, `{"error":{"code":-32700,"message":"a line is no JSON, or too deep"},"id":null,"jsonrpc":"2.0"}`},
		"too deep":           {`{"jsonrpc":"2.0","id":2,"method":"ping","params":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, `"code":-32700`},
		"a batch":            {"[" + call + "]", `{"error":{"code":-32600,"message":"messages must come one a line, not as a batch"},"id":null,"jsonrpc":"2.0"}`},
		"an empty batch":     {"[]", `"code":-32600`},
		"another version":    {`{"jsonrpc":"1.0","id":2,"method":"ping"}`, `"code":-32600`},
		"no object":          {`"ping"`, `"code":-32600`},
		"an unknown method":  {`{"jsonrpc":"2.0","id":2,"method":"no/such"}`, `"id":2,"error":{"code":-32601`},
		"an id of a half":    {`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `{"error":{"code":-32600,"message":"an id must be a string, or a whole number below 2^53"},"id":1.5,"jsonrpc":"2.0"}`},
		"an id too large":    {`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, `"id":9007199254740993,`},
		"an id without end":  {`{"jsonrpc":"2.0","id":1e999,"method":"ping"}`, `"code":-32600`},
		"an id with a point": {`{"jsonrpc":"2.0","id":2.0,"method":"ping"}`, `"id":2,"result":{}`},
		"a line too long":    {`{"jsonrpc":"2.0","id":2,"method":"` + strings.Repeat("x", 16<<20) + `"}`, `"message":"a line has more than 16777216 bytes"`},
		"text that is wrong": {"\xff\xfe", `"code":-32700`},
		"nothing":            {" \r", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			in := strings.NewReader(begin + c.line + "\n" + call)
			if err := mcpserver.New(daemon{}, "s", "test").Run(t.Context(), mcpserver.Stdio{In: in, Out: &out}); err != nil {
				t.Fatal(err)
			}
			lines := slices.Collect(strings.Lines(out.String()))
			has := func(text string) bool {
				return slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, text) })
			}
			want := 2
			if c.answer != "" {
				want++
			}
			if len(lines) != want || !has(answered) || !has(c.answer) {
				t.Errorf("%d lines:\n%.2000s", len(lines), out.String())
			}
		})
	}
}
