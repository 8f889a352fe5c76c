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

// A projection has the time at which it was recorded.
func TestProjectionTime(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	push(t, store, "s", opening()...)
	models, err := budget.NewModels()
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	engine := assemble.New(store, assemble.Options{Models: models, Gauges: gauges, Clock: func() time.Time { return noon }})
	if got := mustAssemble(t, engine, request()); !got.Projection.Time.Equal(noon) {
		t.Errorf("recorded at %v", got.Projection.Time)
	}
}

func TestErrorsSayWhat(t *testing.T) {
	err := &assemble.InjectionError{Name: "clock", Tokens: 12, Reserve: 5}
	if got := err.Error(); got != `injection "clock" takes 12 tokens; 5 are reserved for it, by its reserve_tokens or the budget's injection_reserve` {
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
