package evaluate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
)

var began = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

func gauge() budget.Gauge { return budget.NewGauge(budget.Heuristic{}) }

func message(id string, at time.Time, role eventlog.Role, b ...eventlog.Block) eventlog.Event {
	return eventlog.Event{ID: id, Time: at, Body: &eventlog.Message{Role: role, Blocks: b, Model: map[bool]string{true: "gpt-5"}[role == eventlog.RoleAssistant]}}
}

// recorded is a session of so many reads of files, a minute each, that ends with an edit of a line
// of the first file.
func recorded(t testing.TB, steps int, more ...eventlog.Event) *Session {
	t.Helper()
	events := []eventlog.Event{
		message("system", began, eventlog.RoleSystem, eventlog.Text{Text: "You repair builds."}),
		message("user", began, eventlog.RoleUser, eventlog.Text{Text: "Why does make fail?"}),
	}
	for i := range steps {
		at, id := began.Add(time.Duration(i)*time.Minute), fmt.Sprintf("call_%02d", i)
		body := strings.Repeat(fmt.Sprintf("line of module_%02d.go := value(%d)\n", i, i*37), 40)
		name, arguments := "Read", fmt.Sprintf(`{"file_path":"src/module_%02d.go"}`, i)
		if i == steps-1 {
			name, arguments = "Edit", `{"file_path":"src/module_00.go","old_string":"line of module_00.go := value(0)","new_string":"x"}`
		}
		events = append(events,
			message(id+"-call", at, eventlog.RoleAssistant, eventlog.ToolCall{CallID: id, Name: name, Arguments: arguments}),
			message(id+"-result", at, eventlog.RoleTool, eventlog.ToolResult{CallID: id, Content: []eventlog.Block{eventlog.Text{Text: body}}}))
	}
	_, admitted, err := eventlog.Head{}.Admit(append(events, more...))
	if err != nil {
		t.Fatal(err)
	}
	return NewSession("a/session.jsonl", "test", admitted, gauge())
}

func window(t testing.TB, tokens uint64) budget.Budget {
	t.Helper()
	models, err := budget.NewModels()
	if err != nil {
		t.Fatal(err)
	}
	b, err := budget.Spec{MaxTokens: tokens, Tokenizer: budget.TokenizerHeuristic}.Resolve(models)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func contextdPolicy(t testing.TB, b budget.Budget, p assemble.Policy) Policy {
	t.Helper()
	c, err := NewContextd(t.Context(), p, b, budget.Model{Prices: budget.DefaultPrices()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Policies that are compared side by side get the same figures as each by itself.
func TestCompareMeasuresAsMeasureDoes(t *testing.T) {
	s, b := recorded(t, 40), window(t, 6_000)
	policies := map[string]func() Policy{
		"balanced": func() Policy { return contextdPolicy(t, b, assemble.Policy{Reduction: reduce.DefaultPolicy()}) },
		"frugal":   func() Policy { return contextdPolicy(t, b, assemble.Policy{Reduction: reduce.FrugalPolicy()}) },
		"reachability": func() Policy {
			return contextdPolicy(t, b, assemble.Policy{Reduction: reduce.DefaultPolicy(), Projection: projection.Options{Name: projection.ReachabilityGC}})
		},
		"everything": func() Policy { return &Results{} },
		"last":       func() Policy { return &Results{Keep: 3, Batch: 4} },
		"sliding":    func() Policy { return Sliding{Target: b.Target} },
	}
	var names []string
	var all []Contender
	for name, p := range policies {
		names, all = append(names, name), append(all, Contender{Policy: p()})
	}
	got, err := Compare(t.Context(), s, gauge(), all, Terms{Target: b.Target, Window: b.MaxTokens, Prices: budget.DefaultPrices()})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		alone := Measure(s, gauge(), policies[name](), b.Target)
		figures := got[i].Figures
		if changes := alone.Causes[""]; changes != figures.Changes || figures.Causes[""] > 0 {
			t.Errorf("%s: %d changes, %v alone %d", name, figures.Changes, figures.Causes, changes)
		}
		alone.Causes, figures.Causes = nil, nil
		if !reflect.DeepEqual(alone, figures) {
			t.Errorf("%s: %+v, alone %+v", name, figures, alone)
		}
		if len(got[i].Trail) != len(s.Steps) {
			t.Errorf("%s: a trail of %d for %d calls", name, len(got[i].Trail), len(s.Steps))
		}
	}
}

// Under harness_view, prompts are smaller after a recorded compaction, and what the harness kept is in
// them.
func TestTheHarnessGoesOnAsRecorded(t *testing.T) {
	compaction := eventlog.Event{ID: "compaction", Time: began, Body: &eventlog.Compaction{Summary: "Modules were read.", KeptEventIDs: []string{"call_18-call", "call_18-result", "call_19-call", "call_19-result"}}}
	var more []eventlog.Event
	for i := range 3 {
		id := fmt.Sprintf("after_%d", i)
		more = append(more,
			message(id+"-call", began, eventlog.RoleAssistant, eventlog.ToolCall{CallID: id, Name: "Read", Arguments: `{"file_path":"src/module_05.go"}`}),
			message(id+"-result", began, eventlog.RoleTool, eventlog.ToolResult{CallID: id, Content: []eventlog.Block{eventlog.Text{Text: "line"}}}))
	}
	s := recorded(t, 20, append([]eventlog.Event{compaction}, more...)...)
	got, err := Compare(t.Context(), s, gauge(), []Contender{
		{Reads: projection.Options{Name: projection.HarnessView}, Policy: &Results{}}, {Policy: &Results{}},
	}, Terms{Target: 1 << 40, Window: 1 << 40, Prices: budget.DefaultPrices()})
	if err != nil {
		t.Fatal(err)
	}
	own, all := got[0].Trail, got[1].Trail
	for i := range own {
		if compacted := s.Steps[i].Before > 42; compacted != (own[i].Tokens*3 < all[i].Tokens) || compacted != (own[i].Tokens != all[i].Tokens) {
			t.Errorf("call %d: %d tokens of %d", i+1, own[i].Tokens, all[i].Tokens)
		}
	}
	if n := compactionsOf(s); n != 1 || got[0].Figures.Changes != 1 || got[1].Figures.Changes != 0 {
		t.Errorf("%d compactions, %d and %d changes", n, got[0].Figures.Changes, got[1].Figures.Changes)
	}
}

func TestCompareSaysHowFarItIs(t *testing.T) {
	s := recorded(t, 4)
	var got, want []int
	for _, st := range s.Steps {
		want = append(want, st.Before)
	}
	if _, err := Compare(t.Context(), s, gauge(), []Contender{{Policy: &Results{}}}, Terms{Done: func(n int) { got = append(got, n) }}); err != nil {
		t.Fatal(err)
	}
	if len(got) == 0 || !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestCompareEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Compare(ctx, recorded(t, 3), gauge(), []Contender{{Policy: &Results{}}}, Terms{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// prompt has messages of 1,000 tokens each, named by letters.
func prompt(letters string) Prompt {
	var p Prompt
	for i := range len(letters) {
		p.JSON = append(p.JSON, letters[i], '\n')
		p.Messages = append(p.Messages, Message{End: len(p.JSON), Tokens: 1000})
		p.Tokens += 1000
	}
	return p
}

func TestBill(t *testing.T) {
	prices := budget.Prices{CacheRead: 0.1, CacheWrite: 1.25, MinCachedTokens: 2500}
	for name, c := range map[string]struct {
		terms   Terms
		prompts []string
		gap     time.Duration // between two prompts
		spent   float64
		read    uint64
		expired int
	}{
		"the first is written":             {Terms{}, []string{"abc"}, 0, 3 * 1250, 0, 0},
		"a prefix is read":                 {Terms{}, []string{"abc", "abcd"}, 0, 3*1250 + 3*100 + 1250, 3000, 0},
		"what follows a change is written": {Terms{}, []string{"abcde", "abcXe"}, 0, 5*1250 + 3*100 + 2*1250, 3000, 0},
		"too short to be cached":           {Terms{}, []string{"ab"}, 0, 2 * 1000, 0, 0},
		"too little in common":             {Terms{}, []string{"abc", "abX"}, 0, 6 * 1250, 0, 0},
		"expired":                          {Terms{CacheTTL: time.Minute}, []string{"abc", "abcd"}, 2 * time.Minute, 7 * 1250, 0, 1},
		"not yet expired":                  {Terms{CacheTTL: time.Minute}, []string{"abc", "abcd"}, time.Minute, 3*1250 + 3*100 + 1250, 3000, 0},
		"kept forever":                     {Terms{}, []string{"abc", "abcd"}, 1000 * time.Hour, 3*1250 + 3*100 + 1250, 3000, 0},
		"with an overhead":                 {Terms{Overhead: 2000}, []string{"ab", "abc"}, 0, 4*1250 + 4*100 + 1250, 4000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var b biller
			var bill Bill
			c.terms.Prices, c.terms.Window = prices, 4000
			for i, letters := range c.prompts {
				p := prompt(letters)
				stable, _ := p.compare(b.last)
				b.pay(&bill, p, stable, began.Add(time.Duration(i)*c.gap), c.terms)
			}
			if math.Abs(bill.Spent-c.spent) > 1e-6 || bill.Read != c.read || bill.Expired != c.expired {
				t.Errorf("%+v, want %g spent, %d read, %d expired", bill, c.spent, c.read, c.expired)
			}
			if over := bill.Largest > 4000; over != (bill.OverWindow > 0) {
				t.Errorf("%d over a window of 4000, the largest has %d", bill.OverWindow, bill.Largest)
			}
		})
	}
}
