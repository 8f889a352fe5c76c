package assemble_test

import (
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// TestUseOfAServerToolThatWaits: a use next to a call goes out until something else than its answer follows it, for
// one call or for good. Hashes are of what is sent, and an engine that knows nothing of the session gives the same.
func TestUseOfAServerToolThatWaits(t *testing.T) {
	const use = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`
	const answer = `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`
	ttl := uint32(1)
	said := func(id string, blocks ...eventlog.Block) eventlog.Event {
		return eventlog.Event{ID: id, Body: &eventlog.Message{Role: eventlog.RoleAssistant, Model: "claude-opus-5", Blocks: blocks}}
	}
	asked := []eventlog.Event{
		said("asks", eventlog.ProviderBlock{Provider: "anthropic", JSON: use}, eventlog.ToolCall{CallID: "a", Name: "bash", Arguments: "{}"}),
		{ID: "result", Body: &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{eventlog.ToolResult{CallID: "a", Content: []eventlog.Block{eventlog.Text{Text: "ok"}}}}}},
	}
	for _, c := range []struct {
		name   string
		then   []eventlog.Event
		sent   bool
		broken string // by what the prefix is
	}{
		{"answered", []eventlog.Event{said("answers", eventlog.ProviderBlock{Provider: "anthropic", JSON: answer}, eventlog.Text{Text: "so"})}, true, ""},
		{"given up", []eventlog.Event{text("more", eventlog.RoleUser, "and?")}, false, "log"},
		{"with a reminder", []eventlog.Event{{ID: "reminder", Body: &eventlog.Reminder{Body: "Run the tests.", TTLTurns: &ttl}}}, false, "log"},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := memlog.New()
			defer store.Close()
			req := request()
			req.Budget.Format, req.Budget.InjectionReserve = "anthropic", 100
			push(t, store, "s", append(opening(), asked...)...)
			engine := newEngine(t, store)
			check := func(req assemble.Request, sent bool) *assemble.Context {
				out := mustAssemble(t, engine, req)
				again := mustAssemble(t, newEngine(t, store), req)
				if again.PrefixHash != out.PrefixHash || out.ContextHash != hashLines(lines(out.Messages)) || again.ContextHash != out.ContextHash {
					t.Errorf("the hashes are %s, %s, of a new engine %s, %s", out.PrefixHash, out.ContextHash, again.PrefixHash, again.ContextHash)
				}
				if strings.Contains(lines(out.Messages), use) != sent {
					t.Errorf("sent is not %v: %s", sent, lines(out.Messages))
				}
				var all [][]byte
				for _, m := range out.Messages {
					all = append(all, m.JSON)
				}
				for _, v := range rules.Of("anthropic")(all) {
					t.Errorf("%v", v)
				}
				return out
			}
			check(req, true)
			with := req
			with.Injections = []render.Injection{{Name: "screen", Blocks: []eventlog.Block{eventlog.Text{Text: "now"}}}}
			check(with, false)
			check(req, true)
			push(t, store, "s", c.then...)
			if out := check(req, c.sent); out.Cache.BrokenBy != c.broken {
				t.Errorf("the prefix was broken by %q, not %q", out.Cache.BrokenBy, c.broken)
			}
			push(t, store, "s", text("last", eventlog.RoleUser, "and now?"))
			check(req, c.sent)
		})
	}
}
