package render_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// nested is an object in which objects, or lists, are nested so deeply, itself counted.
func nested(depth int, begins, ends string) string {
	return `{"a":` + strings.Repeat(begins, depth-1) + "1" + strings.Repeat(ends, depth-1) + "}"
}

// TestArgumentsThatNoProviderReads: what a provider that decodes arguments cannot read is a
// text there, and the string that it was where arguments are one.
func TestArgumentsThatNoProviderReads(t *testing.T) {
	long := strings.Repeat("9", 400)
	for _, c := range []struct {
		name, arguments string
		read            string // by whom as the object that it is
	}{
		{"an object", `{"a":[1.50,-0,1e308,1E-400,"1e400",{"a":1}],"b":{"a":2},"a b":"\"a\""}`, "anthropic gemini"},
		{"no double", `{"a":1e400}`, ""},
		{"no double below zero", `{"a":[-1e400]}`, ""},
		{"digits of no double", `{"a":` + long + `}`, ""},
		{"digits after a point", `{"a":0.` + long + `}`, "anthropic gemini"},
		{"a member twice", `{"a":1,"a":2}`, "anthropic"},
		{"a member twice within", `{"a":[{"b":1, "c":2, "b" :3}]}`, "anthropic"},
		{"a member twice by an escape", `{"a":1,"\u0061":2}`, "anthropic"},
		{"a member twice by halves of pairs", `{"\ud800":1,"\ud801":2}`, "anthropic"},
		{"a value twice", `{"a":"b","b":"b","c":["b","b","b"]}`, "anthropic gemini"},
		{"deep", nested(30, `{"a":`, "}"), "anthropic gemini"},
		{"deeper than Gemini reads", nested(31, `{"a":`, "}"), "anthropic"},
		{"lists deeper than Gemini reads", nested(31, "[", "]"), "anthropic"},
		{"deeper", nested(190, `{"a":`, "}"), "anthropic"},
		{"too deep", nested(191, "[", "]"), ""},
	} {
		for _, f := range render.Formats()[1:] {
			messages := []render.Message{user(text("go")), by(claude, run("a", c.arguments)), result("a", "bash", text("ok"))}
			lines := linesOf(joined(f, messages))
			for _, v := range rules.Of(f.Name)(lines) {
				t.Errorf("%s, %s: %v", f.Name, c.name, v)
			}
			all := string(bytes.Join(lines, []byte("\n")))
			want := `"arguments":` + strconv.Quote(c.arguments)
			if f.Name == "anthropic" || f.Name == "gemini" {
				var whole string
				if strings.Contains(c.read, f.Name) {
					whole = strings.NewReplacer(" :", ":", ", ", ",", `\ud800`, `\ufffd`, `\ud801`, `\ufffd`).Replace(c.arguments)
				} else {
					whole = `{"raw_arguments":` + strconv.Quote(c.arguments) + `}`
				}
				want = map[string]string{"anthropic": `"input":`, "gemini": `"args":`}[f.Name] + whole
			}
			if !strings.Contains(all, want) {
				t.Errorf("%s, %s: no %s in\n%.500s", f.Name, c.name, want, all)
			}
		}
	}
}

// TestOwnBlocksThatTheirProviderCannotRead are described.
func TestOwnBlocksThatTheirProviderCannotRead(t *testing.T) {
	result := `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`
	for _, input := range []string{`{"a":1e400}`, nested(200, "[", "]")} {
		blocks := []eventlog.Block{native("anthropic", `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":`+input+`}`), native("anthropic", result), text("so")}
		f, _ := render.FormatNamed("anthropic")
		lines := linesOf(joined(f, []render.Message{user(text("go")), by(claude, blocks...)}))
		if len(rules.Of(f.Name)(lines)) > 0 || bytes.Contains(lines[1], []byte("srvtoolu")) {
			t.Errorf("%.300s", lines[1])
		}
	}
	for _, json := range []string{
		`{"fileData":{"mimeType":"video/mp4","fileUri":"https://youtu.be/x"},"partMetadata":{"a":1e400}}`,
		`{"text":"t","partMetadata":{"a":1,"a":2}}`, `{"text":"t","text":"t"}`, `{"text":"t","partMetadata":{"a":` + nested(30, "[", "]") + `}}`,
	} {
		f, _ := render.FormatNamed("gemini")
		lines := linesOf(joined(f, []render.Message{user(native("google", json))}))
		if len(rules.Of(f.Name)(lines)) > 0 || !bytes.Contains(lines[0], []byte("; ctx:2.0]")) {
			t.Errorf("%.300s", lines[0])
		}
	}
}
