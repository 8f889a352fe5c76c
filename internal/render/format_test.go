package render_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// TestFormats holds every format to what it has to say of itself.
func TestFormats(t *testing.T) {
	names := map[string]bool{}
	for i, f := range render.Formats() {
		if names[f.Name] || (i == 0) != (f.Name == render.NameContextd) {
			t.Errorf("format %d is named %q", i, f.Name)
		}
		names[f.Name] = true
		if got, ok := render.FormatNamed(f.Name); !ok || got != f {
			t.Errorf("%q names %v", f.Name, got)
		}
		if (rules.Of(f.Name) == nil) != (i == 0) || f.Fragments == nil || f.Join == nil {
			t.Errorf("%q lacks something", f.Name)
		}
		if g := f.Framing; g.Call <= 0 || g.Result <= 0 || g.EstimatedCall < g.Call || g.EstimatedResult < g.Result {
			t.Errorf("%q is framed by %+v", f.Name, g)
		}
		if gauge := f.Gauge(budget.NewGauge(budget.Heuristic{})); gauge.Format() != f.Name {
			t.Errorf("%q is counted as %q", f.Name, gauge.Format())
		}
	}
	if f, ok := render.FormatNamed("telegraph"); ok {
		t.Errorf("telegraph is %v", f)
	}
}

// TestFraming: budgets depend on these figures, so they change on purpose only.
func TestFraming(t *testing.T) {
	got := map[string]budget.Framing{}
	for _, f := range render.Formats() {
		got[f.Name] = f.Framing
	}
	want := map[string]budget.Framing{
		"":                 {Call: 10, Result: 10, EstimatedCall: 40, EstimatedResult: 10},
		"anthropic":        {Call: 60, Result: 18, EstimatedCall: 60, EstimatedResult: 18, Tools: 346},
		"openai_chat":      {Call: 13, Result: 13, EstimatedCall: 40, EstimatedResult: 15, Functions: true},
		"openai_responses": {Call: 13, Result: 13, EstimatedCall: 40, EstimatedResult: 15, Functions: true},
		"gemini":           {Call: 34, Result: 14, EstimatedCall: 34, EstimatedResult: 14},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("framings (-want +got):\n%s", diff)
	}
}

// TestSeqsAscend: a message names its events in their order also where it shows them in another.
func TestSeqsAscend(t *testing.T) {
	later := placed(12, message(eventlog.RoleUser, text("and this")))
	for _, f := range render.Formats() {
		for _, m := range joined(f, []render.Message{user(text("go")), reminding(eventlog.RoleUser, "careful"), later, reminding(eventlog.RoleSystem, "slow")}) {
			if !slices.IsSorted(m.Seqs) {
				t.Errorf("%q: a message is of the events %v", f.Name, m.Seqs)
			}
		}
	}
}
