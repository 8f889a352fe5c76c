package assemble_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/render"
)

// everyPolicy are the projection policies, with options under which they change most logs.
var everyPolicy = []projection.Options{
	{}, {Name: projection.Full}, {Name: projection.CleanToolRepair, KeepLast: 1}, {Name: projection.SquashFailed, KeepLast: 1},
	{Name: projection.SummaryPrefix, KeepLast: 1, Summary: "All went well."},
	{Name: projection.ReachabilityGC, RootWindow: new(uint32(1)), MinChars: new(uint32(0)), ClearAtLeastTokens: new(uint32(0))},
	{Name: projection.CustomExpression, Expression: `age > 1 ? "stub" : "keep"`, KeepLast: 1},
	{Name: projection.HarnessView},
}

// TestProjectAdmitsAsAStoreDoes compares Project with an assembly from a store, for logs of every kind,
// with repeated events and events without an id, under every policy and in every format.
func TestProjectAdmitsAsAStoreDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var projected, stored []eventlog.Event
		for i, e := range logtest.GenLog(1, 20).Draw(t, "log") {
			e.ID = fmt.Sprint("event-", i)
			stored = append(stored, e)
			if named := rapid.Bool().Draw(t, "named"); !named {
				e.ID = ""
			}
			projected = append(projected, e)
			if e.ID != "" && rapid.IntRange(0, 3).Draw(t, "twice") == 0 {
				projected = append(projected, e)
			}
		}
		store := memlog.New()
		defer store.Close()
		engine := newEngine(t, store)
		push(t, store, "s", stored...)
		req := request()
		req.Policy.Projection = rapid.SampledFrom(everyPolicy).Draw(t, "policy")
		req.Budget.Format = rapid.SampledFrom(render.Formats()).Draw(t, "format").Name
		want, err := engine.Assemble(context.Background(), req)
		got, gotErr := engine.Project(context.Background(), projected, req)
		if fmt.Sprint(err) != fmt.Sprint(gotErr) {
			t.Fatalf("projected: %v, assembled: %v", gotErr, err)
		}
		if err == nil && (got.PrefixHash != want.PrefixHash || got.ContextHash != want.ContextHash || lines(got.Messages) != lines(want.Messages) || got.AsOf != want.AsOf) {
			t.Fatalf("projected through event %d:\n%s\nassembled through event %d:\n%s", got.AsOf, lines(got.Messages), want.AsOf, lines(want.Messages))
		}
	})
}

func TestProjectRefuses(t *testing.T) {
	engine := newEngine(t, memlog.New())
	same, other := text("one", eventlog.RoleUser, "this"), text("one", eventlog.RoleUser, "that")
	var conflict *eventlog.EventConflictError
	if _, err := engine.Project(context.Background(), []eventlog.Event{same, other}, request()); !errors.As(err, &conflict) || conflict.Index != 1 {
		t.Errorf("one id for two events: %v", err)
	}
	_, err := engine.Project(context.Background(), []eventlog.Event{same, {}}, request())
	wantField(t, err, "events[1].kind")
	if got, err := engine.Project(context.Background(), nil, request()); err != nil || got.MessageCount != 0 || got.AsOf != 0 {
		t.Errorf("nothing is projected as %+v, %v", got, err)
	}
}

func TestProjectIsAFirstAssembly(t *testing.T) {
	events := opening()
	for i := range turns {
		events = append(events, turn(i)...)
	}
	store := memlog.New()
	defer closeStore(t, store)
	push(t, store, "s", events...)
	engine := newEngine(t, store)
	stored := mustAssemble(t, engine, request())
	projected, err := engine.Project(context.Background(), events, request())
	if err != nil {
		t.Fatal(err)
	}
	if lines(projected.Messages) != lines(stored.Messages) || projected.PrefixHash != stored.PrefixHash {
		t.Error("the stored and the stateless path give different bytes")
	}
	if stored.Projection.After.CollapsedThrough == 0 {
		t.Error("the session is too short to need a cut")
	}
	_, err = engine.Project(context.Background(), []eventlog.Event{turn(1)[1]}, request())
	wantField(t, err, "events[0].message.blocks[0].tool_result.call_id")
}
