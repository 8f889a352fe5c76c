package assemble_test

import (
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
)

// Models with different recall tools read one session. Texts cached for one reader, by reducers, projection
// policies or formats, never show its tool's name to another.
func TestTextsNameTheToolOfTheReader(t *testing.T) {
	for name, o := range map[string]projection.Options{
		"raw": {}, "custom": {Name: projection.CustomExpression, Expression: `age > 2 ? "stub" : "keep"`},
		"reachability_gc": {Name: projection.ReachabilityGC, RootWindow: new(uint32), KeepLast: 1},
	} {
		t.Run(name, func(t *testing.T) {
			store := memlog.New()
			defer closeStore(t, store)
			engine := newEngine(t, store)
			push(t, store, "s", opening()...)
			push(t, store, "s", eventlog.Event{ID: "sound", Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{
				eventlog.Media{MIMEType: "audio/ogg", Data: "T2dnUw=="},
			}}})
			for i := range 20 {
				push(t, store, "s", turn(i)...)
			}
			read := func(recall reduce.Recall) (*assemble.Context, string) {
				req := request()
				req.Budget = budget.Spec{MaxTokens: 60_000, Tokenizer: budget.TokenizerO200K, Format: "anthropic"}
				req.Policy.Reduction.ToolResults.Default.MinTokens = 100
				req.Policy.Projection, req.Policy.Reduction.Recall = o, recall
				out := mustAssemble(t, engine, req)
				if replay, err := engine.Replay(t.Context(), "s", out.Projection.ID); err != nil || !replay.Same {
					t.Fatalf("a replay differs: %s, %v", replay.Difference, err)
				}
				return out, strings.ReplaceAll(lines(out.Messages), `\"`, `"`)
			}
			first, text := read("mcp__contextd__recall")
			_, other := read("look")
			_, none := read("")
			for by, text := range map[string]string{`mcp__contextd__recall(pointer: "ctx:`: text, `look(pointer: "ctx:`: other, "": none} {
				for _, tool := range []string{`mcp__contextd__recall(pointer: "ctx:`, `look(pointer: "ctx:`} {
					if strings.Contains(text, tool) != (tool == by) {
						t.Errorf("asked by %q, and %q is in it: %v\n%s", by, tool, tool != by, text)
					}
				}
				if strings.Contains(text, "ResolvePointer") || !strings.Contains(text, "[audio/ogg, ") {
					t.Errorf("ResolvePointer is in it, or nothing of the sound:\n%s", text)
				}
			}
			if !strings.Contains(none, "read again if needed: ctx:") {
				t.Errorf("nothing says what to read again:\n%s", none)
			}
			if again, _ := read("mcp__contextd__recall"); again.PrefixHash != first.PrefixHash {
				t.Error("the first reader's context is another now")
			}
		})
	}
}
