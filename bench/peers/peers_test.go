package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/budget/bpe"
)

// TestContexts: a library's context is measured as it is: which calls it shows, and whether calls and results
// match.
func TestContexts(t *testing.T) {
	encoding, err := bpe.Open(budget.TokenizerO200K)
	if err != nil {
		t.Fatal(err)
	}
	gauge := budget.NewGauge(encoding)
	s, err := newSession("s", trace(9, 100), gauge)
	if err != nil || len(s.Messages) != 9 || !slices.Equal(s.Steps, []int{2, 4, 6, 8}) {
		t.Fatal(s, err)
	}
	whole := uint64(0)
	for _, n := range s.tokens[:6] {
		whole += n
	}
	for _, c := range []struct {
		items    string
		visible  int
		orphaned bool
		all      bool
		text     string
	}{
		{items: `[{"i":0},{"i":1},{"i":2},{"i":3},{"i":4},{"i":5}]`, visible: 2, all: true, text: "module_1.go"},
		{items: `[{"i":0},{"i":4},{"i":5}]`, visible: 1, text: "module_1.go"},
		{items: `[{"i":0},{"i":3},{"i":4},{"i":5}]`, visible: 1, orphaned: true},
		{items: `[{"i":0},{"i":2},{"i":4},{"i":5}]`, visible: 2, orphaned: true},
		{items: `[{"i":2,"calls":[]},{"i":4},{"i":5,"text":"[cleared]"}]`, visible: 1, text: "[cleared]"},
		{items: `[{"i":2,"calls":[]},{"i":3}]`, orphaned: true},
		{items: `[{"role":"assistant","text":"[Tool results]","of":["2","3"]},{"i":4},{"i":5}]`, visible: 2, text: "[Tool results]"},
	} {
		out := sent{Session: "s", Peer: "p", Step: 6}
		if err := json.Unmarshal([]byte(c.items), &out.Items); err != nil {
			t.Fatal(err)
		}
		p, err := s.context(out)
		if err != nil {
			t.Fatal(err)
		}
		bad, err := orphaned(p.JSON, s.answered(out.Step))
		if err != nil || p.Visible != c.visible || bad != c.orphaned || (p.Tokens == whole) != c.all || !strings.Contains(p.Text, c.text) {
			t.Errorf("%s: %d visible, orphaned %v, %d of %d tokens, %v\n%s", c.items, p.Visible, bad, p.Tokens, whole, err, p.Text)
		}
	}
	if _, err := s.context(sent{Step: 2, Items: []item{{I: new(5)}}}); err == nil {
		t.Error("a message from after the call is shown")
	}
}

// TestTable: the table and the plot are made from files that libraries wrote. A library that skips a call is
// reported.
func TestTable(t *testing.T) {
	encoding, err := bpe.Open(budget.TokenizerO200K)
	if err != nil {
		t.Fatal(err)
	}
	gauge := budget.NewGauge(encoding)
	sessions, err := made(options{}, gauge)
	if err != nil {
		t.Fatal(err)
	}
	sessions = sessions[len(sessions)-1:]
	s := sessions[0]
	write := func(steps []int) string {
		path := filepath.Join(t.TempDir(), "out.jsonl")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		e := json.NewEncoder(f)
		for _, step := range steps {
			c := sent{Session: s.Name, Peer: "all", Step: step}
			for i := range step {
				c.Items = append(c.Items, item{I: new(i)})
			}
			if err := e.Encode(c); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	table := &table{target: 20_000, rows: map[string]*row{}}
	if err := table.peers(write(s.Steps), sessions); err != nil {
		t.Fatal(err)
	}
	if f := table.rows["all"].figures; f.Steps != 61 || f.Changes != 0 || f.Visible != f.Calls || f.Over == 0 || table.rows["all"].orphaned != 0 {
		t.Errorf("everything is %+v", f)
	}
	if err := table.peers(write(s.Steps[1:]), sessions); err == nil {
		t.Error("a call that is missing is not noticed")
	}
	r := table.row("contextd")
	r.seconds[sizes[0]] = []float64{3, 1, 2}
	if got, _ := r.median(sizes[0]); got != 2 || !strings.Contains(table.plot(), "contextd</text>") {
		t.Errorf("the median is %v", got)
	}
}
