package assemble_test

import (
	"context"
	"errors"
	"testing"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/projection"
)

// patience is a context that ends after a number of checks, and counts the checks.
type patience struct {
	context.Context
	looks, ends int
}

func (p *patience) Err() error {
	if p.looks++; p.ends > 0 && p.looks >= p.ends {
		return context.Canceled
	}
	return nil
}

// TestComputationsEndWithTheirCaller: if the caller gives up at any point, the computation ends soon after,
// and later answers are as if the request had never been made.
func TestComputationsEndWithTheirCaller(t *testing.T) {
	const turns = 40
	events := 2 + 2*turns
	under := func(o projection.Options) assemble.Request {
		req := request()
		req.Policy.Projection, req.Preview = o, true
		return req
	}
	type call func(ctx context.Context, e *assemble.Engine, made *assemble.Context) error
	assembled := func(o projection.Options) call {
		return func(ctx context.Context, e *assemble.Engine, _ *assemble.Context) error {
			_, err := e.Assemble(ctx, under(o))
			return err
		}
	}
	zero := uint32(0)
	for name, c := range map[string]call{
		"raw":               assembled(projection.Options{}),
		"clean_tool_repair": assembled(projection.Options{Name: projection.CleanToolRepair}),
		"squash":            assembled(projection.Options{Name: projection.SquashFailed}),
		"summary_prefix":    assembled(projection.Options{Name: projection.SummaryPrefix, Summary: "It leaks in one of them."}),
		"reachability":      assembled(projection.Options{Name: projection.ReachabilityGC, Roots: []string{"handler7"}, MinChars: &zero}),
		"custom":            assembled(projection.Options{Name: projection.CustomExpression, Expression: `tokens > 100 ? "stub" : "keep"`}),
		"harness_view":      assembled(projection.Options{Name: projection.HarnessView}),
		"project": func(ctx context.Context, e *assemble.Engine, _ *assemble.Context) error {
			all := opening()
			for i := range turns {
				all = append(all, turn(i)...)
			}
			_, err := e.Project(ctx, all, request())
			return err
		},
		"replay": func(ctx context.Context, e *assemble.Engine, made *assemble.Context) error {
			_, err := e.Replay(ctx, "s", made.Projection.ID)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := memlog.New()
			defer closeStore(t, store)
			push(t, store, "s", opening()...)
			for i := range turns {
				push(t, store, "s", turn(i)...)
			}
			made := mustAssemble(t, newEngine(t, store), request())
			whole := &patience{Context: t.Context()}
			if err := c(whole, newEngine(t, store), made); err != nil {
				t.Fatal(err)
			}
			least := 2 * events
			if name == "raw" { // of what its digest replaces nothing is read
				least = events
			}
			if whole.looks < least {
				t.Errorf("looked %d times whether to end; the log has %d events", whole.looks, events)
			}
			engine := newEngine(t, store)
			for ends := 1; ends <= whole.looks; ends += 1 + whole.looks/100 {
				ctx := &patience{Context: t.Context(), ends: ends}
				err := c(ctx, engine, made)
				if err == nil && ctx.looks < ends {
					break // what was found out before is not found out again
				}
				if !errors.Is(err, context.Canceled) || ctx.looks > ends+100 {
					t.Fatalf("ended at look %d of %d: %v after %d", ends, whole.looks, err, ctx.looks)
				}
			}
			if got := mustAssemble(t, engine, request()); got.ContextHash != made.ContextHash {
				t.Errorf("later the context is %s, not %s", got.ContextHash, made.ContextHash)
			}
		})
	}
}
