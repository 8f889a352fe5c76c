package render_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// TestServerToolsAcrossMessages: the use of a server tool goes out where the API is to answer it next, or did in the
// assistant's next message; and its result with it.
func TestServerToolsAcrossMessages(t *testing.T) {
	const (
		use, gave   = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`, `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`
		again       = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"again"}}`
		escaped     = `{"type":"server_tool\u005fuse","id":"srvtoolu_1","name":"web_search","input":{"query":"again"}}`
		failed      = `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"web_search_tool_result_error","error_code":"unavailable"}}`
		more        = `{"type":"server_tool_use","id":"srvtoolu_2","name":"web_search","input":{}}`
		code, coded = `{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{}}`, `{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"code_execution_tool_result_error","error_code":"unavailable"}}`
		otherTool   = `{"type":"bash_code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"bash_code_execution_tool_result_error","error_code":"unavailable"}}`
		calling     = `"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_1"}`
		caller      = `{` + calling + `}`
	)
	okB := result("b", "bash", text("ok"))
	own := func(json ...string) []eventlog.Block {
		var out []eventlog.Block
		for _, s := range json {
			out = append(out, native("anthropic", s))
		}
		return out
	}
	said := func(blocks []eventlog.Block, more ...eventlog.Block) render.Message {
		return by(claude, append(blocks, more...)...)
	}
	go1, ok := user(text("go")), result("a", "bash", text("ok"))
	for _, c := range []struct {
		name                string
		messages            []render.Message
		carried, notCarried []string
	}{
		{"a pause", []render.Message{go1, said(own(use))}, []string{use}, nil},
		{"after a pause", []render.Message{go1, said(own(use)), said(own(gave), text("so ")), user(text("and?"))}, []string{use, gave}, nil},
		{"an answer at the end", []render.Message{go1, said(own(use)), said(own(gave), text("so "))}, []string{use, gave}, nil},
		{"beside a call", []render.Message{go1, said(own(use), run("a", `{}`)), ok}, []string{use}, nil},
		{"before a call", []render.Message{go1, by(claude, run("a", `{}`), native("anthropic", use)), ok}, []string{use}, nil},
		{"answered after a call", []render.Message{go1, said(own(use), run("a", `{}`)), ok, said(own(gave), text("so")), user(text("and?"))}, []string{use, gave}, nil},
		{"one of two answered", []render.Message{go1, said(own(use, more), run("a", `{}`)), ok, said(own(gave), text("so"))}, nil, []string{use, gave, more}},
		{"with a reminder", []render.Message{go1, said(own(use), run("a", `{}`)), ok, reminding(eventlog.RoleUser, "r")}, nil, []string{use}},
		{"not answered", []render.Message{go1, said(own(use), run("a", `{}`)), ok, said(nil, text("so")), user(text("and?"))}, nil, []string{use}},
		{"answered too late", []render.Message{go1, said(own(use), run("a", `{}`)), ok, said(nil, text("so")), user(text("and?")), said(own(gave), text("so"))}, nil, []string{use, gave}},
		{"not at the end", []render.Message{go1, said(own(use), text("wait")), said(own(gave), text("so"))}, nil, []string{use, gave}},
		{"an id twice, answered", []render.Message{go1, said(own(use, gave, again, failed), text("so")), user(text("and?"))}, []string{use, gave}, []string{again, failed}},
		{"an id twice, answered once", []render.Message{go1, said(own(use, again, gave), text("so")), user(text("and?"))}, []string{again, gave}, []string{use}},
		{"an id twice, answered twice after both", []render.Message{go1, said(own(use, again, gave, failed), text("so")), user(text("and?"))}, []string{again, gave}, []string{use, failed}},
		{"an id twice, unanswered", []render.Message{go1, said(own(use, again))}, nil, []string{use, again}},
		{"an id answered and used again", []render.Message{go1, said(own(use, gave, again))}, []string{use, gave}, []string{again}},
		{"an id in two joined messages", []render.Message{go1, said(own(use, gave), text("so")), said(own(again, failed), text("so")), user(text("and?"))}, []string{use, gave}, []string{again, failed}},
		{"an id in two turns", []render.Message{go1, said(own(use, gave), text("so")), user(text("and?")), said(own(again, failed), text("so"))}, []string{use, gave}, []string{again, failed}},
		{"an id in two turns, its type written with an escape", []render.Message{go1, said(own(use, gave), text("so")), user(text("and?")), said(own(escaped, failed), text("so"))}, []string{use, gave}, []string{escaped, failed}},
		{"an id answered and used again at the end", []render.Message{go1, said(own(use, gave), text("so")), user(text("and?")), said(own(again))}, []string{use, gave}, []string{again}},
		{"an id used again, answered later", []render.Message{go1, said(own(use, gave), text("so")), user(text("and?")), said(own(again), run("a", `{}`)), ok, said(own(failed), text("so"))}, []string{use, gave}, []string{again, failed}},
		{"an id used again where it is answered", []render.Message{go1, said(own(use), run("a", `{}`)), ok, said(own(gave, again, failed), text("so"))}, nil, []string{use, gave, again, failed}},
		{"without its use", []render.Message{go1, said(own(gave), text("so"))}, nil, []string{gave}},
		{"code before a call of the model", []render.Message{go1, said(own(code), run("a", `{}`)), ok, said(own(coded), text("so"))}, nil, []string{code, coded}},
		{"code that calls", []render.Message{go1, said(own(code, caller), run("a", `{}`)), ok, said(own(coded), text("so"))}, []string{code, calling, coded}, nil},
		{"code that waits", []render.Message{go1, said(own(code, caller), run("a", `{}`)), ok}, []string{code, calling}, nil},
		{"code that calls again", []render.Message{go1, said(own(code, caller), run("a", `{}`)), ok, said(own(caller), run("b", `{}`)), okB, said(own(coded), text("so"))}, []string{code, calling, coded}, nil},
		{"code that calls and does not end", []render.Message{go1, said(own(code, caller), run("a", `{}`)), ok, said(nil, text("so")), user(text("and?"))}, nil, []string{code}},
		{"code that calls, with a reminder", []render.Message{go1, said(own(code, caller), run("a", `{}`)), ok, reminding(eventlog.RoleUser, "r")}, nil, []string{code}},
		{"a call of code that ended", []render.Message{go1, said(own(code, caller), run("a", `{}`)), ok, said(own(coded, caller), run("b", `{}`)), okB, user(text("and?"))}, []string{code, calling, coded}, nil},
		{"code that calls again, with another tool's result", []render.Message{go1, said(own(code, caller), run("a", `{}`)), ok, said(own(otherTool, caller), run("b", `{}`)), okB}, nil, []string{code, otherTool}},
		{"a call of a search", []render.Message{go1, said(own(use, caller), run("a", `{}`)), ok, said(own(gave), text("so"))}, []string{use, gave}, nil},
		{"another call of a search", []render.Message{go1, said(own(use, caller), run("a", `{}`)), ok, said(own(caller), run("b", `{}`)), okB, said(own(gave), text("so"))}, nil, []string{use, gave}},
		{"a caller that was dropped", []render.Message{go1, said(own(caller), run("a", `{}`)), ok, said(own(coded), text("so"))}, nil, []string{coded}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, _ := render.FormatNamed("anthropic")
			holdAnthropic(t, true, c.carried, c.messages...)
			holdAnthropic(t, false, c.notCarried, c.messages...)
			whole := joined(f, c.messages)
			for n := range c.messages {
				before := c.messages[:n]
				if len(before) > 0 && before[n-1].Origin == render.Reminder || described(f, before) != described(f, c.messages) {
					continue
				}
				for i, m := range joined(f, before) {
					if i+1 < n && !bytes.Equal(m.JSON, whole[i].JSON) && i+1 < len(joined(f, before)) {
						t.Errorf("message %d changed as the context grew:\n%s\n%s", i, m.JSON, whole[i].JSON)
					}
				}
				if c.messages[n].Role == eventlog.RoleTool {
					continue
				}
				for _, v := range rules.Of(f.Name)(linesOf(joined(f, before))) {
					t.Errorf("of the first %d: %v", n, v)
				}
			}
			var told []string
			for _, m := range whole {
				for _, x := range m.Conversions {
					if x.Kind == render.Described {
						told = append(told, x.What)
					}
				}
			}
			if len(told) != len(c.notCarried) {
				t.Errorf("described: %q", told)
			}
		})
	}
}

// described is the format's count of what is described in a context of these messages.
func described(f *render.Format, messages []render.Message) int {
	var fragments []render.Fragment
	for _, m := range messages {
		fragments = append(fragments, f.Fragments(m)...)
	}
	return f.Described(fragments, nil)
}

// TestManyUsesWait has a message with so many uses that each must not be looked for among all others.
func TestManyUsesWait(t *testing.T) {
	f, _ := render.FormatNamed("anthropic")
	blocks := make([]eventlog.Block, 10_000)
	for i := range blocks {
		blocks[i] = native("anthropic", fmt.Sprintf(`{"type":"server_tool_use","id":"srvtoolu_%d","name":"web_search","input":{}}`, i))
	}
	got := joined(f, []render.Message{user(text("go")), by(claude, blocks...)})
	if n := bytes.Count(got[1].JSON, []byte(`"server_tool_use"`)); n != len(blocks) || len(got[1].Conversions) > 0 {
		t.Errorf("%d of %d uses are carried, with %d conversions", n, len(blocks), len(got[1].Conversions))
	}
}

// TestUseOfAnIDThatWaits: where a message uses an id that an earlier one waits for, Described counts what becomes of its
// other uses, as it must grow when earlier messages change.
func TestUseOfAnIDThatWaits(t *testing.T) {
	f, _ := render.FormatNamed("anthropic")
	code := func(id string) eventlog.Block {
		return native("anthropic", `{"type":"server_tool_use","id":"srvtoolu_`+id+`","name":"code_execution","input":{}}`)
	}
	called := func(id string) []eventlog.Block {
		return blocks(native("anthropic", `{"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_`+id+`"}}`), run("c"+id, `{}`))
	}
	done := native("anthropic", `{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"code_execution_tool_result_error","error_code":"unavailable"}}`)
	var fragments []render.Fragment
	var before []render.Encoded
	described := 0
	for i, m := range []render.Message{
		user(text("go")),
		by(claude, append(blocks(code("1")), called("1")...)...),
		by(claude, slices.Concat(blocks(code("1"), code("2")), called("1"), called("2"))...),
		by(claude, append(blocks(done), called("2")...)...),
		by(claude, text("so")),
	} {
		fragments = slices.Concat(fragments, f.Fragments(m), f.Fragments(result("c", "bash", text("ok"))))
		n, now := f.Described(fragments, nil), f.Join(fragments)
		for j := range max(0, len(before)-1) {
			if n == described && !bytes.Equal(before[j].JSON, now[j].JSON) {
				t.Errorf("step %d changed message %d, and Described is still %d", i, j, n)
			}
		}
		before, described = now, n
	}
}
