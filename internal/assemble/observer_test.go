package assemble_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/render"
)

// watcher is an Observer that keeps what it gets.
type watcher struct {
	began, sessions []string
	made            []*assemble.Context
	errs            []error
}

type watched struct{}

func (w *watcher) Assembly(ctx context.Context, id string) (context.Context, func(*assemble.Context, error)) {
	w.began = append(w.began, id)
	return context.WithValue(ctx, watched{}, true), func(c *assemble.Context, err error) {
		w.sessions, w.made, w.errs = append(w.sessions, id), append(w.made, c), append(w.errs, err)
	}
}

// seenBy notes whether the store was called within the observer's context.
type seenBy struct {
	eventlog.Store
	within bool
}

func (s *seenBy) Session(ctx context.Context, id string) (eventlog.Session, error) {
	s.within = ctx.Value(watched{}) == true
	return s.Store.Session(ctx, id)
}

func TestObserver(t *testing.T) {
	store := &seenBy{Store: memlog.New()}
	defer closeStore(t, store)
	push(t, store, "s", opening()...)
	models, err := budget.NewModels()
	if err != nil {
		t.Fatal(err)
	}
	w := &watcher{}
	plain := newEngine(t, store)
	mustAssemble(t, plain, request())
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return noon }
	engine := assemble.New(store, assemble.Options{Models: models, Gauges: gauges, Clock: clock, Observer: w})
	got := mustAssemble(t, engine, request())
	req := request()
	req.SessionID = "nobody"
	_, missing := engine.Assemble(context.Background(), req)
	if len(w.began) != 2 || len(w.made) != 2 || w.made[0] != got || w.errs[0] != nil || w.sessions[1] != "nobody" || w.made[1] != nil || !errors.Is(w.errs[1], missing) {
		t.Errorf("told of %v, then %v", w.began, w.errs)
	}
	if !store.within {
		t.Error("the store was not called within the observer's context")
	}
	if !got.Projection.Time.Equal(noon) {
		t.Errorf("recorded at %v", got.Projection.Time)
	}
}

func TestErrorsSayWhat(t *testing.T) {
	err := &assemble.InjectionError{Name: "clock", Tokens: 12, Reserve: 5}
	if got := err.Error(); got != `injection "clock" takes 12 tokens; 5 are reserved for it` {
		t.Error(got)
	}
	_, project := newEngine(t, memlog.New()).Project(context.Background(), opening(), assemble.Request{
		Budget: tight, Injections: []render.Injection{{Name: "big", Blocks: []eventlog.Block{eventlog.Text{Text: "more than nothing"}}}},
	})
	var over *assemble.InjectionError
	if !errors.As(project, &over) || over.Reserve != 0 {
		t.Errorf("without a reserve: %v", project)
	}
	req := request()
	req.Policy.Projection.Name = "none such"
	_, err2 := newEngine(t, memlog.New()).Project(context.Background(), opening(), req)
	wantField(t, err2, "policy.projection.policy")
	req = request()
	req.Budget.OutputReserve = req.Budget.MaxTokens
	_, err3 := newEngine(t, memlog.New()).Project(context.Background(), opening(), req)
	var spec *budget.SpecError
	if !errors.As(err3, &spec) || spec.Field != "output_reserve" {
		t.Errorf("no tokens left: %v", err3)
	}
}
