package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
)

// TestChoose: each setting gets the value that is worth most, and stays unchanged if no other value is worth
// more than the first.
func TestChoose(t *testing.T) {
	want := start()
	want[0], want[2] = tuned[0].values[2], tuned[2].values[1]
	asked := 0
	got, err := choose(start(), func(c candidate) (float64, error) {
		asked++
		alike := 0.0
		for i := range c {
			if c[i] == want[i] {
				alike++
			}
		}
		return alike, nil
	})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("chose %s (%v), not %s", got, err, want)
	}
	most := 1
	for _, s := range tuned {
		most += len(s.values) - 1
	}
	if asked != most {
		t.Errorf("asked for %d candidates of %d", asked, most)
	}
}

// TestLeaveOneOut has two harnesses, each with the synthetic trace as its only session, and omits each in
// turn.
func TestLeaveOneOut(t *testing.T) {
	gauge := budget.NewGauge(budget.Heuristic{})
	var sessions []*session
	for _, harness := range []string{"one", "other"} {
		trace, err := traceSession(gauge)
		if err != nil {
			t.Fatal(err)
		}
		trace.Format = harness
		trace.Steps[len(trace.Steps)-1].Lines = []string{"a line that an edit must reproduce"}
		sessions = append(sessions, &session{Session: trace})
	}
	var out bytes.Buffer
	if err := newReport(&out, gauge, sessions).leaveOneOut([]uint64{20_000}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one left out: working_set_share", "other left out: working_set_share", "none left out: ", "20000 chosen on", "20000 other"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
}

// TestSummariesTable: the table has a row for each summarizer, and no summary is written for "none".
func TestSummariesTable(t *testing.T) {
	gauge := budget.NewGauge(budget.Heuristic{})
	trace, err := traceSession(gauge)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := newReport(&out, gauge, []*session{{Session: trace}}).summaries([]uint64{8_192}); err != nil {
		t.Fatal(err)
	}
	shown := map[string][]string{}
	for line := range strings.Lines(out.String()) {
		for _, s := range summarizers {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), s.name+" "); ok {
				shown[s.name] = strings.Fields(rest)
			}
		}
	}
	for _, s := range summarizers {
		f := shown[s.name]
		if len(f) < 3 {
			t.Fatalf("no row of %s:\n%s", s.name, out.String())
		}
		if written := f[len(f)-2] != "0"; written != (s.by != nil) {
			t.Errorf("%s: summaries of %s tokens", s.name, f[len(f)-2])
		}
	}
}
