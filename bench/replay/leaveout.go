package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/evaluate"
	"github.com/contextd/contextd/internal/reduce"
)

// setting is a field of a policy to tune, with the values to try. The first value is the starting point.
type setting struct {
	name   string
	values []float64
	set    func(p *reduce.Policy, value float64)
}

// tuned are the settings, in the order in which they are chosen.
var tuned = []setting{
	{"working_set_share", []float64{0.18, 0.14, 0.21, 0.24}, func(p *reduce.Policy, v float64) { p.Collapse.WorkingSetShare = v }},
	{"index_share", []float64{0.12, 0.08, 0.10}, func(p *reduce.Policy, v float64) { p.Collapse.IndexShare = v }},
	{"clip_share", []float64{0.085, 0.07, 0.10}, func(p *reduce.Policy, v float64) { p.Clipping.Share = v }},
	{"clip_names", []float64{0, 100, 150}, func(p *reduce.Policy, v float64) { p.Clipping.NameTokens = uint64(v) }},
	{"outline_tokens", []float64{200, 100, 300}, func(p *reduce.Policy, v float64) { p.ToolResults.OutlineTokens = uint64(v) }},
}

// overWeight is how much recall, evidence and edits together must gain per unit of cost above the starting
// point's. No candidate gains that much, so in effect a choice must not cost more.
const overWeight = 10

// candidate is a value for each of the tuned settings.
type candidate []float64

// key identifies a candidate.
func (c candidate) key() string { return fmt.Sprint([]float64(c)) }

func (c candidate) String() string {
	var out []string
	for i, s := range tuned {
		out = append(out, fmt.Sprintf("%s %g", s.name, c[i]))
	}
	return strings.Join(out, ", ")
}

// policy is the default policy with a candidate's values; for nil it is the default itself.
func (c candidate) policy() reduce.Policy {
	p := reduce.DefaultPolicy()
	for i, value := range c {
		tuned[i].set(&p, value)
	}
	return p
}

// start is the starting point.
func start() candidate {
	var c candidate
	for _, s := range tuned {
		c = append(c, s.values[0])
	}
	return c
}

// choose tunes the settings one after the other. Each gets the value that is worth most with the values
// chosen so far; it stays unchanged if no other value is worth more.
func choose(best candidate, worth func(candidate) (float64, error)) (candidate, error) {
	most, err := worth(best)
	if err != nil {
		return nil, err
	}
	for i, s := range tuned {
		for _, value := range s.values[1:] {
			c := slices.Clone(best)
			c[i] = value
			got, err := worth(c)
			if err != nil {
				return nil, err
			}
			if got > most {
				best, most = c, got
			}
		}
	}
	return best, nil
}

// leaveOneOut performs leave-one-out cross-validation over harnesses: for each harness it chooses the
// settings on all others, and shows the result on these and on the one that was omitted.
func (r *report) leaveOneOut(windows []uint64) error {
	if err := r.measureEverything(); err != nil {
		return err
	}
	t := tuning{report: r, windows: windows, measured: map[string][]map[*session]figures{}}
	harnesses := map[string]bool{}
	for _, s := range r.sessions {
		harnesses[s.Format] = true
	}
	for _, out := range append(slices.Sorted(maps.Keys(harnesses)), "") {
		if out != "" && (len(harnesses) == 1 || t.figures(r.everything, func(f string) bool { return f == out }).figures.Lines == 0) {
			fmt.Fprintf(r.out, "%s is not left out: it has no edits, or is alone\n\n", out)
			continue
		}
		others := func(format string) bool { return format != out }
		chosen, err := choose(start(), func(c candidate) (float64, error) { return t.worth(c, others) })
		if err != nil {
			return err
		}
		if err := t.write(out, chosen); err != nil {
			return err
		}
	}
	return nil
}

// tuning measures candidates, and caches the results.
type tuning struct {
	*report
	windows  []uint64
	measured map[string][]map[*session]figures // by candidate, for each window
}

func (t *tuning) measure(c candidate) ([]map[*session]figures, error) {
	if of, ok := t.measured[c.key()]; ok {
		return of, nil
	}
	var all []map[*session]figures
	for _, tokens := range t.windows {
		b, err := resolve(tokens)
		if err != nil {
			return nil, err
		}
		of, err := t.local(b, func() (evaluate.Policy, error) {
			return underTest(assemble.Policy{Reduction: c.policy()}, b)
		})
		if err != nil {
			return nil, err
		}
		all = append(all, of)
	}
	t.measured[c.key()] = all
	return all, nil
}

// figures sums up the sessions of the harnesses for which takes is true.
func (t *tuning) figures(of map[*session]figures, takes func(format string) bool) row {
	var r row
	for _, s := range t.sessions {
		if takes(s.Format) {
			r.figures.add(of[s])
			r.baseline.add(t.everything[s])
		}
	}
	return r
}

// worth is the worth of a candidate on some harnesses, over all windows.
func (t *tuning) worth(c candidate, takes func(format string) bool) (float64, error) {
	all, err := t.measure(c)
	if err != nil {
		return 0, err
	}
	first, err := t.measure(start())
	if err != nil {
		return 0, err
	}
	var sum float64
	for i, of := range all {
		r := t.figures(of, takes)
		sum += r.worth() - overWeight*max(0, r.cost()-t.figures(first[i], takes).cost())
	}
	return sum, nil
}

// worth is how much of what later calls need a context still has: recall, evidence and edits.
func (r row) worth() float64 {
	f := r.figures
	part := func(n, of int) float64 { return float64(n) / float64(max(of, 1)) }
	return part(f.Found, f.Wanted) + part(f.Evident, f.Wanted) + part(f.Shown, f.Lines)
}

// cost is relative to sending the whole log.
func (r row) cost() float64 { return r.figures.Cost / r.baseline.Cost }

func (r row) short() string {
	f := r.figures
	return fmt.Sprintf("%.3f · %s · %s · %s", r.cost(), ratio(f.Found, f.Wanted), ratio(f.Evident, f.Wanted), ratio(f.Shown, f.Lines))
}

// write prints what a choice achieves, next to the default. out is the harness that was omitted; "" is none.
func (t *tuning) write(out string, chosen candidate) error {
	before, err := t.measure(start())
	if err != nil {
		return err
	}
	after, err := t.measure(chosen)
	if err != nil {
		return err
	}
	standing, err := t.measure(nil)
	if err != nil {
		return err
	}
	sides := []struct {
		name  string
		takes func(string) bool
	}{
		{"chosen on", func(f string) bool { return f != out }},
		{out, func(f string) bool { return f == out }},
	}
	if out == "" {
		fmt.Fprintf(t.out, "none left out: %s\n", chosen)
		sides = sides[:1]
	} else {
		fmt.Fprintf(t.out, "%s left out: %s\n", out, chosen)
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "cost · recall · evidence · edits\tat first\tchosen\tdefault\t\n")
	for i, tokens := range t.windows {
		for _, side := range sides {
			fmt.Fprintf(w, "%d %s\t%s\t%s\t%s\t\n", tokens, side.name, t.figures(before[i], side.takes).short(),
				t.figures(after[i], side.takes).short(), t.figures(standing[i], side.takes).short())
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(t.out)
	return nil
}
