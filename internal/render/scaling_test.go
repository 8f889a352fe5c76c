package render_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
)

// pieces are conversations with one message of n pieces, or with two where one answers the other.
var pieces = []struct {
	name string
	of   func(n int) []render.Message
}{
	{"texts", func(n int) []render.Message {
		return []render.Message{user(text("go")), by(claude, repeated(n, func(i int) []eventlog.Block { return blocks(text(fmt.Sprint("I look at ", i))) })...)}
	}},
	{"calls and results", func(n int) []render.Message { return calling(n, "bash") }},
	{"results that do not name their tool", func(n int) []render.Message { return calling(n, "") }},
	{"images of one result", func(n int) []render.Message {
		return []render.Message{user(text("go")), by(claude, run("c", `{}`)), result("c", "bash", repeated(n, func(int) []eventlog.Block {
			return blocks(eventlog.Media{MIMEType: "image/png", Data: png})
		})...)}
	}},
	{"reasoning", func(n int) []render.Message {
		return []render.Message{user(text("go")), by("o3", repeated(n, func(i int) []eventlog.Block {
			return blocks(eventlog.Thinking{Text: "hm", Signature: fmt.Sprint("rs_", i), EncryptedContent: "x"}, text("so"))
		})...)}
	}},
	{"calls with long ids that a host's list names", func(n int) []render.Message {
		var details []string
		calls := repeated(n, func(i int) []eventlog.Block {
			id := fmt.Sprintf("call_%d_%s", i, strings.Repeat("x", 60))
			details = append(details, `{"type":"reasoning.encrypted","data":"eA==","id":"`+id+`"}`)
			return blocks(run(id, `{}`))
		})
		seal := eventlog.Thinking{Signature: `{"reasoning_details":[` + strings.Join(details, ",") + `]}`}
		return []render.Message{user(text("go")), by("google/gemini-3-pro", append(blocks(seal), calls...)...)}
	}},
	{"server tools", func(n int) []render.Message {
		return []render.Message{user(text("go")), by(claude, repeated(n, func(i int) []eventlog.Block { return blocks(searching(i), searched(i)) })...), user(text("on"))}
	}},
	{"server tools that wait", func(n int) []render.Message {
		return []render.Message{user(text("go")), by(claude, repeated(n, func(i int) []eventlog.Block { return blocks(searching(i)) })...)}
	}},
	{"server tools answered in the next message", func(n int) []render.Message {
		return []render.Message{
			user(text("go")), by(claude, repeated(n, func(i int) []eventlog.Block { return blocks(searching(i)) })...),
			by(claude, repeated(n, func(i int) []eventlog.Block { return blocks(searched(i)) })...), user(text("on")),
		}
	}},
	{"server tools that use an id again", func(n int) []render.Message {
		out := []render.Message{user(text("go"))}
		for range n {
			out = append(out, by(claude, searching(1), searched(1)))
		}
		return out
	}},
	{"code that calls", func(n int) []render.Message {
		return []render.Message{
			user(text("go")), by(claude, repeated(n, func(i int) []eventlog.Block {
				id := fmt.Sprint("srvtoolu_", i)
				return blocks(native("anthropic", `{"type":"server_tool_use","id":"`+id+`","name":"code_execution","input":{}}`),
					native("anthropic", `{"caller":{"type":"code_execution_20250825","tool_id":"`+id+`"}}`), run(fmt.Sprint("c", i), `{}`))
			})...),
			placed(4, message(eventlog.RoleTool, repeated(n, func(i int) []eventlog.Block {
				return blocks(eventlog.ToolResult{CallID: fmt.Sprint("c", i), ToolName: "bash", Content: blocks(text("ok"))})
			})...)),
		}
	}},
	{"code that each later message calls", func(n int) []render.Message {
		out := []render.Message{user(text("go"))}
		for calls, code := 0, 0; calls < n; code++ {
			made := blocks(native("anthropic", fmt.Sprintf(`{"type":"server_tool_use","id":"srvtoolu_%d","name":"code_execution","input":{}}`, code)))
			for i := range code + 1 {
				made = append(made, native("anthropic", fmt.Sprintf(`{"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_%d"}}`, i)), run(fmt.Sprint("c", calls), `{}`))
				calls++
			}
			out = append(out, by(claude, made...))
		}
		return out
	}},
	{"items of OpenAI", func(n int) []render.Message {
		return []render.Message{user(text("go")), by("gpt-5", repeated(n, func(i int) []eventlog.Block {
			return blocks(native("openai", fmt.Sprintf(`{"type":"web_search_call","id":"ws_%d","status":"completed","action":{"type":"search","query":"q"}}`, i)))
		})...)}
	}},
	{"parts of Gemini", func(n int) []render.Message {
		return []render.Message{user(text("go")), by(flash, repeated(n, func(int) []eventlog.Block {
			return blocks(native("google", `{"thoughtSignature":"AAAA"}`), native("google", `{"executableCode":{"language":"PYTHON","code":"1"}}`))
		})...)}
	}},
	{"documents", func(n int) []render.Message {
		return []render.Message{user(repeated(n, func(i int) []eventlog.Block {
			cites := fmt.Sprint(i%2 == 0)
			return blocks(native("anthropic", `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a"},"citations":{"enabled":`+cites+`}}`))
		})...)}
	}},
	{"texts after a document", func(n int) []render.Message {
		document := native("anthropic", `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a"},"citations":{"enabled":true}}`)
		return []render.Message{user(document), by(claude, repeated(n, func(i int) []eventlog.Block { return blocks(text(fmt.Sprint("I look at ", i))) })...)}
	}},
	{"members of arguments", func(n int) []render.Message {
		return []render.Message{user(text("go")), by(claude, run("c", `{"x":0`+strings.Join(texts(n), "")+`}`)), result("c", "bash", text("ok"))}
	}},
}

func texts(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(`,"m%d":{"cache_control":null}`, i))
	}
	return out
}

func blocks(all ...eventlog.Block) []eventlog.Block { return all }

func repeated(n int, of func(i int) []eventlog.Block) []eventlog.Block {
	var out []eventlog.Block
	for i := range n {
		out = append(out, of(i)...)
	}
	return out
}

func calling(n int, tool string) []render.Message {
	return []render.Message{
		user(text("go")), by(claude, repeated(n, func(i int) []eventlog.Block { return blocks(run(fmt.Sprint("c", i), `{"command":"make"}`)) })...),
		placed(4, message(eventlog.RoleTool, repeated(n, func(i int) []eventlog.Block {
			return blocks(eventlog.ToolResult{CallID: fmt.Sprint("c", i), ToolName: tool, Content: blocks(text("ok"))})
		})...)),
	}
}

func searching(i int) eventlog.ProviderBlock {
	return native("anthropic", fmt.Sprintf(`{"type":"server_tool_use","id":"srvtoolu_%d","name":"web_search","input":{"query":"the weather in Paris"}}`, i))
}

func searched(i int) eventlog.ProviderBlock {
	return native("anthropic", fmt.Sprintf(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_%d","content":{"type":"web_search_tool_result_error","error_code":"unavailable"}}`, i))
}

// whole renders a context as an assembly does.
func whole(f *render.Format, messages []render.Message) {
	var fragments []render.Fragment
	for _, m := range messages {
		fragments = append(fragments, f.Fragments(m)...)
	}
	f.Described(fragments, nil)
	f.Join(fragments)
}

// allocated is how many bytes the rendering of a context allocates.
func allocated(f *render.Format, messages []render.Message) uint64 {
	return allocatedBy(func() { whole(f, messages) })
}

func allocatedBy(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// BenchmarkPieces renders contexts with messages of many pieces.
func BenchmarkPieces(b *testing.B) {
	for _, p := range pieces {
		for _, f := range render.Formats() {
			for _, n := range []int{1_000, 4_000} {
				messages := p.of(n)
				b.Run(fmt.Sprintf("%s/%s/%d", p.name, f.Name, n), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						whole(f, messages)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/piece")
				})
			}
		}
	}
}

// TestPiecesCostAlike holds what a format allocates for a piece of a message: about as much in a large message as in a
// small one.
func TestPiecesCostAlike(t *testing.T) {
	const few, times = 300, 8
	for _, p := range pieces {
		for _, f := range render.Formats() {
			small, large := allocated(f, p.of(few)), allocated(f, p.of(few*times))
			if large > small*times*2 {
				t.Errorf("%s in %q: %d bytes a piece of %d, and %d of %d", p.name, f.Name, small/few, few, large/few/times, few*times)
			}
		}
	}
}

// TestBlocksAreReadOnce holds how many bytes Anthropic's format allocates for a piece of a message that is made of blocks
// of its own: more would be a sign that blocks are parsed again and again.
func TestBlocksAreReadOnce(t *testing.T) {
	most := map[string]uint64{
		"server tools": 7_000, "server tools that wait": 7_500, "server tools answered in the next message": 17_000,
		"code that calls": 20_000, "documents": 11_000,
	}
	f, _ := render.FormatNamed("anthropic")
	const n = 500
	for _, p := range pieces {
		if budget := most[p.name]; budget > 0 {
			if got := allocated(f, p.of(n)) / n; got > budget {
				t.Errorf("%s: %d bytes a piece, and the budget is %d", p.name, got, budget)
			}
		}
	}
}

// TestJoiningAgainReadsNothing holds how many bytes Anthropic's format allocates for a piece of a message that it joined
// before: it parses and renders no message again.
func TestJoiningAgainReadsNothing(t *testing.T) {
	f, _ := render.FormatNamed("anthropic")
	const n = 500
	for _, p := range pieces {
		most, ok := map[string]uint64{
			"server tools": 400, "server tools that wait": 700, "server tools answered in the next message": 1_500,
			"code that calls": 1_900, "code that each later message calls": 1_200, "server tools that use an id again": 2_300,
			"texts after a document": 100,
		}[p.name]
		if !ok {
			continue
		}
		var fragments []render.Fragment
		for _, m := range p.of(n) {
			fragments = append(fragments, f.Fragments(m)...)
		}
		join := func() { f.Described(fragments, nil); f.Join(fragments) }
		join()
		if got := allocatedBy(join) / n; got > most {
			t.Errorf("%s: %d bytes a piece, and the budget is %d", p.name, got, most)
		}
	}
}

// TestDescribedEnds: a call that ended stops at the message at which it is.
func TestDescribedEnds(t *testing.T) {
	f, _ := render.FormatNamed("anthropic")
	const n = 50
	for _, p := range []struct {
		name string
		uses func(i int) int
	}{{"ids of their own", func(i int) int { return i }}, {"one id", func(int) int { return 0 }}} {
		messages := []render.Message{user(text("go"))}
		for i := range n {
			messages = append(messages, by(claude, searching(p.uses(i))), by(claude, searched(p.uses(i))), user(text("on")))
		}
		for _, most := range []int{3, 1000} {
			var fragments []render.Fragment
			for _, m := range messages {
				fragments = append(fragments, f.Fragments(m)...)
			}
			asked := 0
			f.Described(fragments, func() error {
				if asked++; asked < most {
					return nil
				}
				return context.Canceled
			})
			if most > n && asked < n-1 || most < n && asked > 2*most {
				t.Errorf("%s: asked %d times whether the call ended, where it does at %d", p.name, asked, most)
			}
		}
	}
}
