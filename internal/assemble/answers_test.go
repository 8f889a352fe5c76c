package assemble_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/fair"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/memory"
	"github.com/contextd/contextd/internal/pointers"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
)

func TestPointersGiveTheRawBody(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	push(t, store, "s", opening()...)
	long := make([]eventlog.Event, 0, 2)
	long = append(long, eventlog.Event{ID: "long-call", Body: &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{eventlog.ToolCall{CallID: "long", Name: "bash", Arguments: `{}`}}}})
	body := strings.Repeat("a line of the log\n", 2000)
	long = append(long, eventlog.Event{ID: "long-result", Body: &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{eventlog.ToolResult{CallID: "long", Content: []eventlog.Block{eventlog.Text{Text: body}}}}}})
	push(t, store, "s", long...)
	got := mustAssemble(t, engine, request())
	if len(got.Pointers) == 0 {
		t.Fatal("nothing was clipped")
	}
	for _, p := range got.Pointers {
		_, block, err := pointers.Resolve(context.Background(), store, "s", p.Name)
		if err != nil {
			t.Fatal(err)
		}
		raw := reduce.BodyText(block)
		sum := sha256.Sum256([]byte(raw))
		if raw != body || p.ContentHash != "sha256:"+hex.EncodeToString(sum[:]) || p.Chars != len(body) {
			t.Errorf("%s gives %d bytes; the record says %d chars, %s", p.Name, len(raw), p.Chars, p.ContentHash)
		}
		if p.CallID != "long" || p.ToolName != "bash" {
			t.Errorf("%s is said to be of call %q, tool %q", p.Name, p.CallID, p.ToolName)
		}
		if !strings.Contains(lines(got.Messages), p.Name) {
			t.Errorf("the context does not show %s", p.Name)
		}
	}
	listed, err := pointers.NewReader(store, "s").Read(context.Background(), got.Projection.Pointers)
	if err != nil || fmt.Sprint(listed) != fmt.Sprint(got.Pointers) {
		t.Errorf("the record lists %v, the header %v (%v)", listed, got.Pointers, err)
	}
	_, _, err = pointers.Resolve(context.Background(), store, "s", "nonsense")
	wantField(t, err, "pointer")
	for _, pointer := range []string{"ctx:99.0", "ctx:4.7"} {
		var missing *eventlog.NotFoundError
		if _, _, err := pointers.Resolve(context.Background(), store, "s", pointer); !errors.As(err, &missing) {
			t.Errorf("%s: error is %v, want not found", pointer, err)
		}
	}
}

func TestEstimate(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	push(t, store, "s", opening()...)
	if _, ok, err := engine.Estimate(context.Background(), "s", 0, nil); ok || err != nil {
		t.Errorf("an estimate before the first assembly: %v, %v", ok, err)
	}
	made := mustAssemble(t, engine, request())
	push(t, store, "s", turn(1)...)
	got, ok, err := engine.Estimate(context.Background(), "s", 0, nil)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	next := mustAssemble(t, engine, request())
	if got.Projected != next.Budget.Projected || got.Projected <= made.Budget.Projected || got.Target != made.Budget.Target {
		t.Errorf("estimated %d of %d, assembled %d of %d", got.Projected, got.Target, next.Budget.Projected, next.Budget.Target)
	}
}

func TestRemindersStandLast(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	push(t, store, "s", opening()...)
	ttl := uint32(1)
	push(t, store, "s",
		eventlog.Event{ID: "r1", Body: &eventlog.Reminder{Body: "old plan", DedupeKey: "plan"}},
		eventlog.Event{ID: "r2", Body: &eventlog.Reminder{Body: "brief", TTLTurns: &ttl}},
		eventlog.Event{ID: "r3", Body: &eventlog.Reminder{Body: "new plan", DedupeKey: "plan"}})
	shown := func() (out []string) {
		got := mustAssemble(t, engine, request())
		for i, m := range got.Messages {
			if m.Origin == render.Reminder {
				out = append(out, m.Blocks[0].(eventlog.Text).Text)
			} else if len(out) > 0 {
				t.Errorf("message %d comes after a reminder", i)
			}
		}
		if got.Cache.BrokenBy != "" {
			t.Errorf("reminders that moved are reported as a rewrite by %s", got.Cache.BrokenBy)
		}
		return out
	}
	if got := shown(); fmt.Sprint(got) != "[brief new plan]" {
		t.Errorf("reminders are %v", got)
	}
	push(t, store, "s", turn(1)...)
	push(t, store, "s", turn(2)...)
	if got := shown(); fmt.Sprint(got) != "[new plan]" {
		t.Errorf("two turns later the reminders are %v", got)
	}
}

func TestRefusals(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	long := text("long", eventlog.RoleUser, strings.Repeat("word ", 9000))
	long.Body.(*eventlog.Message).Pinned = true
	push(t, store, "s", text("user", eventlog.RoleUser, "short"), long)
	ctx := context.Background()

	_, err := engine.Assemble(ctx, request())
	var over *assemble.BudgetError
	if !errors.As(err, &over) || over.Needed <= over.Target || len(over.Parts) == 0 || over.Parts[0].Seq != 2 {
		t.Errorf("error is %v, want the irreducible message at event 2", err)
	}
	head := eventlog.Seq(9)
	req := request()
	req.AsOf = &head
	var missing *eventlog.NotFoundError
	if _, err := engine.Assemble(ctx, req); !errors.As(err, &missing) || missing.Kind != "event" {
		t.Errorf("an event behind the head: %v", err)
	}
	req = request()
	req.Policy.Projection.Name = "no such policy"
	_, err = engine.Assemble(ctx, req)
	wantField(t, err, "policy.projection.policy")
	req = request()
	req.Budget.Tokenizer = "no such tokenizer"
	var spec *budget.SpecError
	if _, err := engine.Assemble(ctx, req); !errors.As(err, &spec) || spec.Field != "tokenizer" {
		t.Errorf("an unknown tokenizer: %v", err)
	}
	if _, err := engine.Replay(ctx, "s", "p1-0007"); !errors.As(err, &missing) {
		t.Errorf("an unknown projection: %v", err)
	}
	if _, err := engine.Replay(ctx, "s", "nonsense"); !errors.As(err, &missing) || missing.Kind != "projection" {
		t.Errorf("no projection's id: %v", err)
	}
	if page, err := logtest.Collect(records.After(ctx, store, "s", "")); err != nil || len(page) > 0 {
		t.Errorf("refused requests left %d records, %v", len(page), err)
	}
}

func TestACancelledCallerDoesNotWaitForTheSession(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	push(t, store, "s", opening()...)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 20 { // either the session is free at once or the context is done
		if _, err := engine.Assemble(ctx, request()); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if got := mustAssemble(t, engine, request()); got.MessageCount != 2 {
		t.Errorf("the session holds %d messages", got.MessageCount)
	}
}

// workingStore records, during each read, how much memory calls have taken from the work budget, and how many turns.
type workingStore struct {
	eventlog.Store
	work          *memory.Budget
	turns         *fair.Turns
	most, running int64
}

func (s *workingStore) Read(ctx context.Context, id string, from, to eventlog.Seq) iter.Seq2[eventlog.Event, error] {
	s.most, s.running = max(s.most, s.work.Used()), max(s.running, s.turns.Running())
	return s.Store.Read(ctx, id, from, to)
}

// TestReadingIsWork: whatever computes a context takes memory from the work budget, for each event of the log however
// short its text is, and a turn of the processor. It gives both back.
func TestReadingIsWork(t *testing.T) {
	turns := fair.NewTurns(fair.TurnsOptions{Limit: 4, PerClient: 4, Clock: epoch})
	store := &workingStore{Store: memlog.New(), work: memory.NewBudget("work_memory", 64<<20, time.Second), turns: turns}
	defer closeStore(t, store)
	const events = 10_000
	var batch []eventlog.Event
	for i := range events {
		batch = append(batch, text(strconv.Itoa(i), eventlog.RoleUser, "x"))
	}
	push(t, store, "s", batch...)
	models, err := budget.NewModels()
	if err != nil {
		t.Fatal(err)
	}
	engine := assemble.New(store, assemble.Options{Models: models, CacheSessions: 8, Clock: epoch, Gauges: gauges, Work: store.work, Processor: turns})
	req := request()
	req.Budget.MaxTokens = 1_000_000
	var made *assemble.Context
	for _, test := range []struct {
		name string
		work func() error
	}{
		{"assemble", func() (err error) { made, err = engine.Assemble(t.Context(), req); return err }},
		{"assemble what a harness shows", func() error {
			req := req
			req.Policy.Projection.Name = projection.HarnessView
			_, err := engine.Assemble(t.Context(), req)
			return err
		}},
		{"replay", func() error { _, err := engine.Replay(t.Context(), "s", made.Projection.ID); return err }},
		{"explain", func() error {
			_, err := engine.Explain(t.Context(), "s", assemble.Asked{Projection: made.Projection.ID}, "x", req)
			return err
		}},
	} {
		store.most, store.running = 0, 0
		if err := test.work(); err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if least := int64(events * 500); store.most < least || store.running != 1 {
			t.Errorf("%s: %d bytes and %d turns were taken to read %d events", test.name, store.most, store.running, events)
		}
		if store.work.Used() != 0 || turns.Running() != 0 {
			t.Errorf("%s: %d bytes and %d turns are kept", test.name, store.work.Used(), turns.Running())
		}
	}
}

func TestManySessionsInLittleMemory(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	first := map[string]string{}
	for round := range 2 {
		for i := range 20 { // more than the engine keeps
			id := fmt.Sprint("session-", i)
			if round == 0 {
				push(t, store, id, opening()...)
				push(t, store, id, turn(i)...)
			}
			req := request()
			req.SessionID = id
			got := mustAssemble(t, engine, req)
			if round == 0 {
				first[id] = got.PrefixHash
			} else if got.PrefixHash != first[id] || got.Cache.StableMessages != got.MessageCount {
				t.Errorf("%s: %d of %d messages stable, hash %s, before %s", id, got.Cache.StableMessages, got.MessageCount, got.PrefixHash, first[id])
			}
		}
	}
}
