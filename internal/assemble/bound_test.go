package assemble_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/provider"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// boundModel plays models whose provider binds reasoning to all that was before it: it signs with a hash of
// the request, and checks that each of its blocks comes back after the same.
type boundModel struct {
	after map[string]string // signature → what it follows; empty for models that bind nothing
	shown int               // bound blocks that came back
}

// takes checks a request.
func (m *boundModel) takes(t *rapid.T, sent []assemble.Message) {
	t.Helper()
	for i, line := range sent {
		for _, signature := range signatures(line) {
			before, known := m.after[signature]
			if known && before == "" {
				continue
			}
			m.shown++
			if before != "after\n"+lines(sent[:i]) {
				t.Fatalf("message %d: block %s is bound to a different conversation (known: %v):\n%s\nbut it was made %s", i, signature, known, lines(sent[:i]), before)
			}
		}
	}
	var all [][]byte
	for _, line := range sent {
		all = append(all, line.JSON)
	}
	for _, v := range rules.Of("anthropic")(all) {
		t.Fatalf("%+v in\n%s", v, lines(sent))
	}
}

// signatures returns those of a message's reasoning.
func signatures(line assemble.Message) (all []string) {
	var message struct {
		Content []struct{ Type, Signature string }
	}
	if json.Unmarshal(line.JSON, &message) != nil { // content may be a string
		return nil
	}
	for _, block := range message.Content {
		if block.Type == "thinking" {
			all = append(all, block.Signature)
		}
	}
	return all
}

// answers is what a model says to a request.
func (m *boundModel) answers(name string, sent []assemble.Message, blocks ...eventlog.Block) eventlog.Event {
	signature := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "seal %d", len(m.after)))
	if m.after[signature] = "after\n" + lines(sent); !provider.Binds(name) {
		m.after[signature] = ""
	}
	return thought(signature, name, blocks...)
}

// thought is a message of a model with reasoning, whose id is the signature.
func thought(signature, model string, blocks ...eventlog.Block) eventlog.Event {
	blocks = append([]eventlog.Block{eventlog.Thinking{Text: "Hm.", Signature: signature}}, blocks...)
	return eventlog.Event{ID: signature, Body: &eventlog.Message{Role: eventlog.RoleAssistant, Model: model, Blocks: blocks}}
}

func reads(id string) eventlog.ToolCall {
	return eventlog.ToolCall{CallID: id, Name: "read", Arguments: `{"path":"a.go"}`}
}

func resultOf(id, body string) eventlog.Event {
	return eventlog.Event{ID: "result of " + id, Body: &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{eventlog.ToolResult{
		CallID: id, ToolName: "read", Content: []eventlog.Block{eventlog.Text{Text: body}},
	}}}}
}

// boundWorld is an agent in a session, and in forks of it.
type boundWorld struct {
	store  eventlog.Store
	engine *assemble.Engine
	model  *boundModel
	req    assemble.Request
	seen   []eventlog.Seq // of contexts of the session
	late   string         // a call that has no result yet
}

// TestBoundReasoning lets an agent work whose models take their reasoning back only after what it followed,
// while its context is reduced in every way.
func TestBoundReasoning(t *testing.T) {
	shown := 0
	rapid.Check(t, func(t *rapid.T) {
		store := memlog.New()
		defer store.Close()
		w := &boundWorld{store: store, engine: newEngine(t, store), model: &boundModel{after: map[string]string{}}, req: request()}
		push(t, store, "s", opening()...)
		w.req.Budget.Format, w.req.Budget.InjectionReserve = "anthropic", 200
		w.req.Budget.MaxTokens = rapid.SampledFrom([]uint64{3_000, 8_000, 200_000}).Draw(t, "max_tokens")
		name := rapid.SampledFrom([]string{"", "", projection.Full, projection.ReachabilityGC, projection.SquashFailed, projection.CleanToolRepair}).Draw(t, "projection")
		w.req.Policy.Projection.Name = name
		w.req.Policy.Reduction.ToolResults.Strict = name == "" && rapid.Bool().Draw(t, "strict")
		if rapid.Bool().Draw(t, "keep_thinking") {
			w.req.Policy.Reduction.Thinking = reduce.Thinking{}
		}
		models := []string{"claude-opus-5-5"}
		if rapid.Bool().Draw(t, "models") {
			models = append(models, "claude-sonnet-5-5", "claude-opus-4-1")
		}
		for n := range rapid.IntRange(5, 40).Draw(t, "turns") {
			if !w.turn(t, n, rapid.SampledFrom(models).Draw(t, "model")) {
				return
			}
		}
		shown += w.model.shown
	})
	if shown == 0 {
		t.Error("no reasoning was shown")
	}
}

// turn is a model call, and what happens around it. It returns false where no context fits.
func (w *boundWorld) turn(t *rapid.T, n int, model string) bool {
	with, events := w.req, func(events ...eventlog.Event) { push(t, w.store, w.req.SessionID, events...) }
	switch rapid.IntRange(0, 26).Draw(t, "before") {
	case 0:
		with.Injections = []render.Injection{{Name: "clock", Blocks: []eventlog.Block{eventlog.Text{Text: fmt.Sprint("It is ", n)}}}}
	case 1:
		ttl := uint32(2)
		events(eventlog.Event{ID: fmt.Sprint("r", n), Body: &eventlog.Reminder{Body: fmt.Sprint("Mind step ", n), TTLTurns: &ttl}})
	case 2:
		w.engine = newEngine(t, w.store)
	case 3:
		with.Budget.MaxTokens += 1_000
	case 4:
		c := assemble.Compaction{SessionID: w.req.SessionID, Request: w.req, Strategy: reduce.Mask, KeepLastTurns: 1}
		if _, _, err := w.engine.Compact(t.Context(), c, nil, marking(t, w.store, w.req.SessionID)); err != nil {
			t.Fatal(err)
		}
	case 5:
		if len(w.seen) > 0 { // a context of the past, which no model answers
			old := w.req
			old.AsOf = &w.seen[rapid.IntRange(0, len(w.seen)-1).Draw(t, "as_of")]
			w.model.takes(t, mustAssemble(t, w.engine, old).Messages)
		}
	case 6:
		events(text(fmt.Sprint("u", n), eventlog.RoleUser, "Go on."))
	case 7:
		events(text(fmt.Sprint("sys", n), eventlog.RoleSystem, fmt.Sprint("From now on, rule ", n)))
	case 8:
		e := w.model.answers(model, nil, eventlog.Text{Text: "I was here."})
		e.Labels = map[string]string{eventlog.LabelOwnPrompt: "true"}
		events(text(fmt.Sprint("imported", n), eventlog.RoleUser, "Who was here?"), e, text(fmt.Sprint("u", n), eventlog.RoleUser, "And now?"))
	case 9:
		w.fork(t, n)
		with.SessionID = w.req.SessionID
	case 10:
		if w.late != "" {
			events(resultOf(w.late, "late"))
			w.late = ""
		}
	}
	out, err := w.engine.Assemble(t.Context(), with)
	var over *assemble.BudgetError
	if errors.As(err, &over) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	w.model.takes(t, out.Messages)
	w.seen = append(w.seen, out.AsOf)
	again := mustAssemble(t, newEngine(t, w.store), with)
	if again.ContextHash != out.ContextHash {
		t.Fatalf("another engine gives\n%s\nand not\n%s", lines(again.Messages), lines(out.Messages))
	}
	replay, err := w.engine.Replay(t.Context(), w.req.SessionID, out.Projection.ID)
	if err != nil || !replay.Same {
		t.Fatalf("the record is not rebuilt: %s, %v", replay.Difference, err)
	}
	call := fmt.Sprint("c", n)
	switch rapid.IntRange(0, 20).Draw(t, "after") {
	case 0, 1:
		events(w.model.answers(model, out.Messages), text(fmt.Sprint("n", n), eventlog.RoleUser, "You said nothing."))
		return true
	case 2: // the model was not reached
		events(text(fmt.Sprint("f", n), eventlog.RoleUser, "Are you there?"))
		return true
	case 3: // it came while the model worked
		events(text(fmt.Sprint("q", n), eventlog.RoleUser, "And look at b.go."))
	case 4:
		if w.late == "" {
			w.late = call
			events(w.model.answers(model, out.Messages, reads(call)))
			return true
		}
	}
	events(w.model.answers(model, out.Messages, reads(call)))
	events(resultOf(call, strings.Repeat(fmt.Sprint("line ", n, "\n"), rapid.IntRange(1, 200).Draw(t, "lines"))))
	return true
}

// fork goes on in a fork of the session, at an event of which a context was made or at the head.
func (w *boundWorld) fork(t *rapid.T, n int) {
	info, err := w.store.Session(t.Context(), w.req.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	at := info.Head
	if len(w.seen) > 0 && rapid.Bool().Draw(t, "past") {
		i := rapid.IntRange(0, len(w.seen)-1).Draw(t, "at")
		at, w.seen = w.seen[i], w.seen[:i+1]
	}
	id := fmt.Sprintf("s/%d", n)
	if _, err := w.store.Fork(t.Context(), eventlog.ForkRequest{ParentID: w.req.SessionID, At: at, NewID: id, Time: epoch()}); err != nil {
		t.Fatal(err)
	}
	if w.req.SessionID = id; at < info.Head {
		w.late = ""
	}
}

// TestKeptBoundReasoning is about what was before a change: it follows what it followed.
func TestKeptBoundReasoning(t *testing.T) {
	const model = "claude-opus-5-5"
	for name, test := range map[string]struct {
		format string
		then   []eventlog.Event // after the third context, before the last one
		want   string           // the reasoning that the last context shows
	}{
		"a message follows the results": {"anthropic", []eventlog.Event{text("u", eventlog.RoleUser, "Are you there?")}, "T1 T2"},
		"a result is late":              {"anthropic", []eventlog.Event{thought("T3", model, reads("c3")), resultOf("c3", "b"), resultOf("c2", "a")}, "T1 T2"},
		"nothing":                       {"anthropic", []eventlog.Event{thought("T3", model, reads("c3")), resultOf("c3", "b")}, "T1 T2 T3"},
		"a message came meanwhile":      {"", []eventlog.Event{text("u", eventlog.RoleUser, "Wait."), thought("T3", model, reads("c3"))}, "T1 T2"},
		"a message came in between":     {"", []eventlog.Event{thought("T3", model, reads("c3")), resultOf("c3", "b"), text("u", eventlog.RoleUser, "Wait."), thought("T4", model)}, "T1 T2 T3 T4"},
		"a harness had its own prompt": {"anthropic", []eventlog.Event{
			thought("T3", model, reads("c3")), resultOf("c3", "b"),
			{ID: "T4", Labels: map[string]string{eventlog.LabelOwnPrompt: "true"}, Body: thought("T4", model, reads("c4")).Body},
			resultOf("c4", "b"), thought("T5", model),
		}, "T1 T2 T3"},
	} {
		t.Run(name, func(t *testing.T) {
			store := memlog.New()
			defer closeStore(t, store)
			req := request()
			req.Budget.MaxTokens, req.Budget.Format = 200_000, test.format
			engine := newEngine(t, store)
			push(t, store, "s", opening()...)
			mustAssemble(t, engine, req)
			push(t, store, "s", thought("T1", model, reads("c1")), resultOf("c1", "a"))
			mustAssemble(t, engine, req)
			push(t, store, "s", thought("T2", model, reads("c2")))
			if name != "a result is late" {
				push(t, store, "s", resultOf("c2", "a"))
			}
			mustAssemble(t, engine, req)
			push(t, store, "s", test.then...)
			var got []string
			for _, m := range mustAssemble(t, engine, req).Messages {
				for _, b := range m.Blocks {
					if thinking, ok := b.(eventlog.Thinking); ok {
						got = append(got, thinking.Signature)
					}
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("it shows %v, want %s", got, test.want)
			}
		})
	}
}

// TestAContextReadsFewRecords: however often a context was made before.
func TestAContextReadsFewRecords(t *testing.T) {
	store := &countingStore{Store: memlog.New(), kind: "projection"}
	defer closeStore(t, store)
	push(t, store, "s", append(opening(), thought("T1", "claude-opus-5-5", eventlog.Text{Text: "Done."}))...)
	engine := newEngine(t, store)
	for range 50 {
		store.read = 0
		mustAssemble(t, engine, request())
	}
	if store.read == 0 || store.read > 5 {
		t.Errorf("%d records were read", store.read)
	}
}
