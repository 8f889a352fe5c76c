package evaluate

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
)

// tallied is a report of sessions of so many calls each.
func tallied(t *testing.T, keep int, calls ...int) Report {
	t.Helper()
	set := Settings{Policies: []string{"last", Everything}, Kinds: []Kind{KindSimple, KindSimple}}
	tally := NewTally(set, keep)
	b := window(t, 4_000)
	price := 2.0
	for i, n := range calls {
		s := recorded(t, n)
		out, err := Compare(t.Context(), s, gauge(), []Contender{{Policy: &Results{Keep: 2}}, {Policy: &Results{}}}, Terms{Target: b.Target, Window: b.MaxTokens, Prices: budget.DefaultPrices()})
		if err != nil {
			t.Fatal(err)
		}
		m := Measured{Session: s, Model: SessionModel{Model: ModelOf(s.Events), Window: b.MaxTokens}, Outcomes: out}
		if i == 0 {
			m.Model.Model, m.Model.InputUSD = "priced", &price
		}
		tally.File()
		tally.Add(m)
	}
	tally.Fail("a/broken.jsonl", "unexpected EOF")
	tally.Other()
	return tally.Report()
}

func TestReport(t *testing.T) {
	r := tallied(t, 2, 4, 12, 8)
	if r.Sessions != 3 || r.Files != 3 || r.Others != 1 || len(r.Failed) != 1 || r.Calls != 24 || r.Priced != 1 {
		t.Errorf("%+v", r)
	}
	last, all := r.Policies[0], r.Policies[1]
	if *all.Cost != 1 || *all.Recall != 1 || *all.Edits != 1 || *last.Cost == 1 || *last.Edits != 0 || last.PrefixChanges == 0 || *last.CallsVisible != 1 {
		t.Errorf("last: %+v\neverything: %+v", last, all)
	}
	if len(r.Models) != 2 || r.Models[0].Model != "gpt-5" || r.Models[0].Sessions != 2 {
		t.Errorf("models: %+v", r.Models)
	}
	if len(r.Largest) != 2 || r.Largest[0].Calls != 12 || r.Largest[1].Calls != 8 {
		t.Errorf("the largest sessions are not those of 12 and 8 calls: %d", len(r.Largest))
	}
	var spent, usd float64
	for _, d := range r.Days {
		spent, usd = spent+d.Spent[1], usd+*d.USD[1]
	}
	if math.Abs(spent-all.Spent) > 1e-6 || math.Abs(usd-*all.USD) > 1e-12 {
		t.Errorf("days have %g tokens of %g and $%g of $%g", spent, all.Spent, usd, *all.USD)
	}
	text, err := json.Marshal(r)
	if err != nil || strings.Contains(string(text), "NaN") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestReportOfNothing(t *testing.T) {
	text, err := json.Marshal(NewTally(Settings{}, 3).Report())
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"failed_files", "models", "harnesses", "days", "largest_sessions"} {
		if !strings.Contains(string(text), `"`+list+`":[]`) {
			t.Errorf("%s is no empty list in %s", list, text)
		}
	}
}

// A long session has a trail of bounded length, which ends where the session does.
func TestTrailsAreShort(t *testing.T) {
	var long []Point
	for i := range 10_001 {
		long = append(long, Point{Tokens: uint64(i), Changed: i%3 == 1, Cause: "log"})
	}
	got := trailOf("x", long)
	if len(got.Points) > trailPoints || got.Points[len(got.Points)-1].Call != len(long) || len(got.Changes) != trailChanges {
		t.Errorf("%d points, %d changes", len(got.Points), len(got.Changes))
	}
	if c := got.Changes[1]; c.Call != 5 || c.Before != 3 || c.After != 4 {
		t.Errorf("%+v", c)
	}
}
