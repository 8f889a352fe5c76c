package compaction_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/compaction"
	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/extractive"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model is a summarizer's backend that answers by a function and keeps the requests.
type model struct {
	answer func(context.Context, summarize.Request) (summarize.Output, error)

	mu       sync.Mutex
	requests []summarize.Request
}

func (m *model) Summarize(ctx context.Context, r summarize.Request) (summarize.Output, error) {
	m.mu.Lock()
	m.requests = append(m.requests, r)
	m.mu.Unlock()
	return m.answer(ctx, r)
}

func (m *model) asked() []summarize.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]summarize.Request(nil), m.requests...)
}

func writes(_ context.Context, r summarize.Request) (summarize.Output, error) {
	return summarize.Output{Text: fmt.Sprintf("The modules of events %d to %d are in order.", r.From, r.To), Model: "model-1"}, nil
}

func fails(context.Context, summarize.Request) (summarize.Output, error) {
	return summarize.Output{}, errors.New("connection refused")
}

// world is a compactor with everything real around it but the model and the clock.
type world struct {
	t         *testing.T
	store     *memlog.Store
	engine    *assemble.Engine
	scheduler *summarize.Scheduler
	hooks     *lifecycle.Hooks
	events    *lifecycle.Watcher
	bus       *lifecycle.Bus
	*compaction.Compactor
}

// noon is the time in all tests.
func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

func gauges(string) (budget.Gauge, error) { return budget.NewGauge(budget.Heuristic{}), nil }

func start(t *testing.T, m *model, change ...func(*compaction.Options)) *world {
	t.Helper()
	return startOn(t, memlog.New(), m, change...)
}

func startOn(t *testing.T, store *memlog.Store, m *model, change ...func(*compaction.Options)) *world {
	t.Helper()
	models, err := budget.NewModels()
	if err != nil {
		t.Fatal(err)
	}
	registry, err := summarize.NewRegistry(map[string]summarize.Summarizer{
		"extractive": {Backend: extractive.Backend{}}, "model": {Backend: m, Timeout: time.Hour, CoolDown: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	bus := lifecycle.NewBus(lifecycle.BusOptions{})
	journal := lifecycle.NewJournal(store, bus, noon)
	w := &world{
		t: t, store: store, bus: bus, events: bus.Subscribe(nil),
		engine: assemble.New(store, assemble.Options{Models: models, Gauges: gauges, Clock: noon, CacheSessions: 8, Journal: journal}),
		hooks:  lifecycle.NewHooks(lifecycle.HooksOptions{Deadline: time.Hour, OnTimeout: lifecycle.Block}),
	}
	news := compaction.NewNews(journal)
	w.scheduler = summarize.NewScheduler(summarize.Options{Store: store, Sessions: w.engine, Registry: registry, Observer: news, Journal: journal, Now: noon})
	ids := 0
	o := compaction.Options{
		Engine: w.engine, Scheduler: w.scheduler, News: news, Journal: journal, Hooks: w.hooks, Store: store, Clock: noon,
		NewID:  func() (string, error) { ids++; return fmt.Sprintf("mark-%d", ids), nil },
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	for _, c := range change {
		c(&o)
	}
	w.Compactor = compaction.New(o)
	t.Cleanup(w.end)
	return w
}

// end stops everything; it may be called before the test's own end.
func (w *world) end() {
	w.Compactor.Close()
	w.scheduler.Close()
	w.events.Close()
	if err := w.store.Close(); err != nil && !errors.Is(err, eventlog.ErrClosed) { // another world may have it, too
		w.t.Error(err)
	}
}

func (w *world) push(events ...eventlog.Event) {
	w.t.Helper()
	commit, err := w.store.Append(w.t.Context(), "s", eventlog.Batch{Events: events, Time: noon()})
	if err == nil {
		_, err = commit.Wait(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func say(id string, role eventlog.Role, text string) eventlog.Event {
	return eventlog.Event{ID: id, Body: &eventlog.Message{Role: role, Blocks: []eventlog.Block{eventlog.Text{Text: text}}}}
}

// open begins a session with so many turns.
func (w *world) open(turns int) {
	w.t.Helper()
	w.push(say("system", eventlog.RoleSystem, "You are a careful engineer."), say("user", eventlog.RoleUser, "Find the module that leaks."))
	w.turns(0, turns)
}

// turns lets a session grow by turns from up to below to.
func (w *world) turns(from, to int) {
	w.t.Helper()
	for i := from; i < to; i++ {
		w.push(turnOf(i)...)
	}
}

// turnOf is a turn of about 300 tokens.
func turnOf(i int) []eventlog.Event {
	id := fmt.Sprintf("call-%d", i)
	body := strings.Repeat(fmt.Sprintf("pkg/mod%d/handler.go: ok\n", i), 30)
	return []eventlog.Event{{ID: id, Body: &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{
		eventlog.Text{Text: "I look at the next module."},
		eventlog.ToolCall{CallID: id, Name: "read_file", Arguments: fmt.Sprintf(`{"path":"pkg/mod%d/handler.go"}`, i)},
	}}}, {ID: id + "-result", Body: &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{
		eventlog.ToolResult{CallID: id, ToolName: "read_file", Content: []eventlog.Block{eventlog.Text{Text: body}}},
	}}}}
}

// settings is the request for contexts in these tests. It evicts nothing by age.
func settings() assemble.Request {
	policy := reducetest.Policy()
	// Compactions are asked for here; none happens of its own accord before that.
	policy.Collapse.To, policy.Collapse.CutFrom, policy.Collapse.StartAt = 0.35, 0, 0.8
	policy.ToolResults = reduce.ToolResults{OutlineTokens: 20}
	return assemble.Request{
		SessionID: "s", Budget: budget.Spec{MaxTokens: 6_000, Tokenizer: "heuristic"},
		Policy: assemble.Policy{Reduction: policy, Summaries: decide.SummaryPolicy{Summarizer: "model"}},
	}
}

// answer is a context and the last event of the span that is being summarised.
type answer struct {
	*assemble.Context
	SummarizingThrough eventlog.Seq
}

func (w *world) ask(ctx context.Context, req assemble.Request) (answer, error) {
	made, through, err := w.Compactor.Assemble(ctx, req)
	return answer{made, through}, err
}

func (w *world) assemble() answer {
	w.t.Helper()
	out, err := w.ask(w.t.Context(), settings())
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// request asks for a compaction by hand, down to so many tokens.
func request(strategy reduce.Strategy, target uint64) compaction.Request {
	return compaction.Request{
		Mode: lifecycle.ModeManual, Trigger: eventlog.TriggerManual,
		Compaction: assemble.Compaction{SessionID: "s", Request: settings(), Strategy: strategy, TargetTokens: target},
	}
}

func (w *world) compact(r compaction.Request) compaction.Outcome {
	w.t.Helper()
	out, err := w.Compact(w.t.Context(), r)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// published receives the next events, which must arrive, and checks their types. It ignores contexts and
// reminder counts unless they are expected.
func (w *world) published(want ...lifecycle.Type) []lifecycle.Event {
	w.t.Helper()
	var got []lifecycle.Event
	if len(want) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	for e := range w.events.Events(ctx) {
		if e.Type != want[len(got)] && (e.Type == lifecycle.Projected || e.Type == lifecycle.ReminderDecremented) {
			continue
		}
		if got = append(got, e); len(got) == len(want) {
			break
		}
	}
	if len(got) < len(want) {
		w.t.Fatalf("published was %+v, and then nothing; due are %v", got, want)
	}
	for i := range want {
		if got[i].Type != want[i] {
			w.t.Fatalf("published was %s where %s is due: %+v", got[i].Type, want[i], got)
		}
	}
	return got
}

// silent checks that no event was published meanwhile, by publishing one and receiving it next.
func (w *world) silent() {
	w.t.Helper()
	w.bus.Publish(lifecycle.Happened(lifecycle.SummaryFailed, lifecycle.AttributeReason, "nothing else"))
	if e := w.published(lifecycle.SummaryFailed)[0]; e.Attributes[lifecycle.AttributeReason] != "nothing else" {
		w.t.Errorf("published was %+v", e)
	}
}

// runtime answers the hooks' calls by a function, and keeps them.
type runtime struct {
	sub *lifecycle.Subscriber
	// calls are those of either hook, in their order.
	calls chan lifecycle.Call
	done  chan struct{}
}

func (w *world) serve(reply func(lifecycle.Call) lifecycle.Reply) *runtime {
	w.t.Helper()
	r := &runtime{
		sub:   w.hooks.Subscribe(lifecycle.Subscription{PreCompact: true, PostCompact: true}),
		calls: make(chan lifecycle.Call, 100), done: make(chan struct{}),
	}
	go func() {
		defer close(r.done)
		for c := range r.sub.Calls(context.Background()) {
			r.calls <- c
			if c.Hook != lifecycle.PreCompact {
				continue
			}
			answer := reply(c)
			answer.CallID = c.ID
			if err := r.sub.Reply(answer); err != nil {
				w.t.Error(err)
			}
		}
	}()
	w.t.Cleanup(r.leave)
	return r
}

func (r *runtime) leave() {
	r.sub.Close()
	<-r.done
}

// allow, and block with a reason.
func allow(lifecycle.Call) lifecycle.Reply { return lifecycle.Reply{} }
func block(lifecycle.Call) lifecycle.Reply {
	return lifecycle.Reply{Decision: lifecycle.Block, Reason: "in the middle of a plan"}
}
