package recall_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/explain"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/recall"
	"github.com/contextd/contextd/internal/records"
)

// TestCalls holds answers to testdata. The directives are
//
//	log        one event a line: who says it and what, ${x*3} standing for xxx and \n for
//	           a line's end; a call is "call ID TOOL ARGUMENTS", a result "result ID TEXT"
//	           or "error ID TEXT"
//	TOOL       a call of the tool: its arguments, of pages of tokens=N
//
// Rewrite with -args -rewrite.
func TestCalls(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		store := memlog.New()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "log" {
				var events []eventlog.Event
				for line := range strings.Lines(d.Input) {
					events = append(events, event(t, fmt.Sprint(d.Pos, len(events)), strings.TrimSuffix(line, "\n")))
				}
				push(t, store, events...)
				return ""
			}
			tokens := uint64(1000)
			d.MaybeScanArgs(t, "tokens", &tokens)
			result, err := session(store, tokens).Call(t.Context(), d.Cmd, strings.TrimSpace(d.Input))
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			if result.Failed {
				return "failed: " + result.Text + "\n"
			}
			return strings.TrimSuffix(result.Text, "\n") + "\n"
		})
	})
}

func session(store eventlog.Store, tokens uint64) recall.Session {
	return recall.Session{
		ID: "s", Log: store, Name: "mcp__contextd__recall", Gauge: budget.NewGauge(budget.Heuristic{}), PageTokens: tokens,
		Explain: func(_ context.Context, call uint32, text string) (explain.Explanation, error) {
			switch {
			case call > 2:
				return explain.Explanation{}, &eventlog.NotFoundError{Kind: "model call", Name: fmt.Sprint(call)}
			case strings.HasPrefix(text, "ctx:99"):
				return explain.Explanation{}, &eventlog.NotFoundError{Kind: "pointer", Name: text}
			case call == 1:
				return explain.Explanation{}, &eventlog.InvalidError{Field: "text", Reason: "call 1 named no projection, so nobody knows what was sent"}
			case text == "nowhere":
				return explain.Explanation{Projection: &records.Projection{ID: "p3-0001", AsOf: 3}}, nil
			}
			return explain.Explanation{
				Call: records.ModelCall{Number: 2}, Seen: true, Sightings: []explain.Sighting{
					{Shown: explain.ShownLedger, Seen: true},
					{Seq: 3, Shown: explain.ShownStubbed, Reason: "old results", Pointer: "ctx:3.0"},
				},
			}, nil
		},
	}
}

func push(t testing.TB, store eventlog.Store, events ...eventlog.Event) {
	t.Helper()
	commit, err := store.Append(t.Context(), "s", eventlog.Batch{Time: time.Unix(1, 0), Events: events})
	if err == nil {
		_, err = commit.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func event(t testing.TB, id, line string) eventlog.Event {
	who, what, _ := strings.Cut(line, " ")
	said := func(role eventlog.Role, blocks ...eventlog.Block) eventlog.Event {
		return eventlog.Event{ID: id, Body: &eventlog.Message{Role: role, Blocks: blocks}}
	}
	written := func(s string) eventlog.Block {
		for {
			before, rest, ok := strings.Cut(s, "${")
			if !ok {
				return eventlog.Text{Text: strings.ReplaceAll(s, `\n`, "\n")}
			}
			inside, after, _ := strings.Cut(rest, "}")
			var n int
			text, times, _ := strings.Cut(inside, "*")
			if _, err := fmt.Sscan(times, &n); err != nil {
				t.Fatal(err)
			}
			s = before + strings.Repeat(text, n) + after
		}
	}
	id2, rest, _ := strings.Cut(what, " ")
	switch who {
	case "system":
		return said(eventlog.RoleSystem, written(what))
	case "user":
		return said(eventlog.RoleUser, written(what))
	case "assistant":
		return said(eventlog.RoleAssistant, written(what))
	case "thought":
		return said(eventlog.RoleAssistant, eventlog.Thinking{Text: what}, eventlog.Text{Text: "I know."})
	case "sealed":
		return said(eventlog.RoleAssistant, eventlog.Thinking{Signature: what})
	case "image":
		return said(eventlog.RoleUser, eventlog.Media{MIMEType: what, Data: "\x89PNG"})
	case "note":
		return eventlog.Event{ID: id, Body: &eventlog.Reminder{Body: what}}
	case "summary":
		return eventlog.Event{ID: id, Body: &eventlog.Compaction{Summary: what}}
	case "call":
		tool, args, _ := strings.Cut(rest, " ")
		return said(eventlog.RoleAssistant, eventlog.Text{Text: "I look."}, eventlog.ToolCall{CallID: id2, Name: tool, Arguments: args})
	case "result", "error":
		return said(eventlog.RoleTool, eventlog.ToolResult{CallID: id2, Content: []eventlog.Block{written(rest)}, IsError: who == "error"})
	}
	t.Fatalf("nobody says %s", line)
	return eventlog.Event{}
}

// All pages of a body together are the body, and each begins at the line that its heading says.
func TestPagesAreTheBody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.StringOfN(rapid.SampledFrom([]rune("ab \n\n世é")), 1, 3000, -1).Draw(t, "body")
		store := memlog.New()
		commit, err := store.Append(context.Background(), "s", eventlog.Batch{Time: time.Unix(1, 0), Events: []eventlog.Event{
			{ID: "1", Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: body}}}},
		}})
		if err == nil {
			_, err = commit.Wait(context.Background())
		}
		if err != nil {
			t.Fatal(err)
		}
		s := session(store, 256)
		call := func(args map[string]any) recall.Result {
			written, err := json.Marshal(args)
			if err != nil {
				t.Fatal(err)
			}
			result, err := s.Call(context.Background(), "recall", string(written))
			if err != nil {
				t.Fatal(err)
			}
			return result
		}
		whole, line := "", 1
		for page := 1; ; page++ {
			result := call(map[string]any{"pointer": "ctx:1.0", "page": page})
			if result.Failed {
				break
			}
			heading, text, _ := strings.Cut(result.Text, "\n")
			if tokens := s.Gauge.Text(text); tokens > s.PageTokens {
				t.Fatalf("page %d has %d tokens", page, tokens)
			}
			if _, at, ok := strings.Cut(heading, ", lines "); ok {
				var from, through int
				if _, err := fmt.Sscanf(at, "%d to %d of", &from, &through); err != nil || from != line {
					t.Fatalf("page %d begins in line %d: %s", page, line, heading)
				}
				if again := call(map[string]any{"pointer": "ctx:1.0", "line": through}); !strings.Contains(again.Text, fmt.Sprintf(" to %d of", through)) && !strings.HasSuffix(text, "\n") {
					t.Fatalf("line %d is not on a page that ends with it: %s", through, again.Text)
				}
			}
			whole += text
			line += strings.Count(text, "\n")
		}
		if whole != body {
			t.Fatalf("the pages are %q, not %q", whole, body)
		}
	})
}

// Whatever a model writes as arguments is answered, or refused in words.
func FuzzArguments(f *testing.F) {
	store := memlog.New()
	push(f, store, event(f, "1", "user Begin."), event(f, "2", `call c bash {"command":"a\\nb"}`), event(f, "3", "result c one\\ntwo"))
	for _, seed := range []string{
		`{"pointer":"ctx:3.0","page":1}`, `{"pointer":"ctx:3.0","line":"2"}`, `{"text":"ONE"}`, `{"pattern":"t.o$","limit":1}`,
		`{"pattern":"(x{100}){100}"}`, `{"pattern":"["}`, `{"text":"one\ntwo","before":4}`, `{"pointer":1}`, `[]`, `{"page":1e400}`,
	} {
		for _, tool := range []string{"recall", "search_log", "explain"} {
			f.Add(tool, seed)
		}
	}
	f.Fuzz(func(t *testing.T, tool, arguments string) {
		result, err := session(store, 256).Call(t.Context(), tool, arguments)
		if err != nil || !strings.HasPrefix(result.Text, "[contextd: ") {
			t.Errorf("%s(%s) is %q, %v", tool, arguments, result.Text, err)
		}
	})
}

func BenchmarkSearch(b *testing.B) {
	store := memlog.New()
	for n := range 100 {
		var events []eventlog.Event
		for i := range 500 {
			id := fmt.Sprintf("%d-%d", n, i)
			events = append(events, event(b, "c"+id, "call "+id+` bash {"command":"make"}`), event(b, "r"+id, "result "+id+" "+strings.Repeat("a line of some output\\n", 60)))
		}
		push(b, store, events...)
	}
	for name, arguments := range map[string]string{
		"text": `{"text":"Not there"}`, "expression": `{"pattern":"not (there|here)"}`, "costly": `{"pattern":"[a-z]{1,40}x"}`,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if result, err := session(store, 1000).Call(b.Context(), recall.SearchLog, arguments); err != nil || result.Failed {
					b.Fatal(result, err)
				}
			}
		})
	}
}
