package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/evaluate"
	builtin "github.com/contextd/contextd/internal/policy"
	"github.com/contextd/contextd/internal/reduce"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// workers is how many sessions are replayed in parallel.
const workers = 2

// report measures sessions and prints tables.
type report struct {
	out      io.Writer
	gauge    budget.Gauge
	sessions []*session
	// policy is the policy that the daemon is asked for; nil is its default.
	policy *contextdv1.Policy
	// model is the model that is asked in a provider's format; empty is the daemon's default.
	model string
	// hashes are those of earlier runs; nil if none are stored.
	hashes *hashFile
	// everything has, by session, the figures of sending the whole log.
	everything map[*session]figures
}

func newReport(out io.Writer, gauge budget.Gauge, sessions []*session) *report {
	return &report{out: out, gauge: gauge, sessions: sessions, everything: map[*session]figures{}}
}

// simple are the policies that contextd is compared with.
var simple = []struct {
	name string
	make func(b budget.Budget) evaluate.Policy
}{
	{"last 5 results, each step", func(budget.Budget) evaluate.Policy { return &evaluate.Results{Keep: 5} }},
	{"last 5 results, in batches of 10", func(budget.Budget) evaluate.Policy { return &evaluate.Results{Keep: 5, Batch: 10} }},
	{"sliding window at the budget", func(b budget.Budget) evaluate.Policy { return evaluate.Sliding{Target: b.Target} }},
}

// local measures every session under a policy in this process.
func (r *report) local(b budget.Budget, newPolicy func() (evaluate.Policy, error)) (map[*session]figures, error) {
	all := make([]figures, len(r.sessions))
	var group errgroup.Group
	group.SetLimit(workers)
	for i, s := range r.sessions {
		group.Go(func() error {
			p, err := newPolicy()
			if err != nil {
				return err
			}
			all[i] = newFigures()
			all[i].Figures = evaluate.Measure(s.Session, r.gauge, p, b.Target)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := map[*session]figures{}
	for i, s := range r.sessions {
		out[s] = all[i]
	}
	return out, nil
}

func (r *report) measureEverything() error {
	var err error
	r.everything, err = r.local(budget.Budget{Target: 1 << 60}, func() (evaluate.Policy, error) { return &evaluate.Results{}, nil })
	return err
}

// sum adds up figures of one format, or of all for "".
func (r *report) sum(of map[*session]figures, format string) figures {
	var total figures
	for _, s := range r.sessions {
		if format == "" || s.Format == format {
			total.add(of[s])
		}
	}
	return total
}

func (r *report) row(name string, of map[*session]figures, format string) row {
	return row{name, r.sum(of, format), r.sum(r.everything, format)}
}

// underTest is a policy of contextd whose reducers run in this process.
func underTest(p assemble.Policy, b budget.Budget) (*evaluate.Contextd, error) {
	return evaluate.NewContextd(context.Background(), p, b, budget.Model{Prices: budget.DefaultPrices()})
}

// direct prints the tables for reducers that run in this process.
func (r *report) direct(windows []uint64) error {
	named, err := builtin.Set{}.Resolve(builtin.Overlay{}, builtin.Overlay{Name: r.policy.GetName()})
	if err != nil {
		return err
	}
	if err := r.measureEverything(); err != nil {
		return err
	}
	for _, tokens := range windows {
		b, err := resolve(tokens)
		if err != nil {
			return err
		}
		of, err := r.local(b, func() (evaluate.Policy, error) {
			return underTest(named, b)
		})
		if err != nil {
			return err
		}
		if err := r.write(tokens, b, of); err != nil {
			return err
		}
	}
	return nil
}

// withStores runs two daemons, one for each kind of store.
func (r *report) withStores(ctx context.Context, do func(disk, memory *daemon) error) (err error) {
	dir, err := os.MkdirTemp("", "contextd-replay-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary, err := buildDaemon(ctx, dir)
	if err != nil {
		return err
	}
	disk, err := startDaemon(ctx, binary, "disk", dir, "disk")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disk.close()) }()
	memory, err := startDaemon(ctx, binary, "memory", dir, "memory")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, memory.close()) }()
	return do(disk, memory)
}

// daemon prints the tables for the real daemon.
func (r *report) daemon(ctx context.Context, windows []uint64, files []file) error {
	if err := r.measureEverything(); err != nil {
		return err
	}
	return r.withStores(ctx, func(disk, memory *daemon) error { return r.replay(ctx, windows, files, disk, memory) })
}

func (r *report) replay(ctx context.Context, windows []uint64, files []file, disk, memory *daemon) error {
	if err := importFiles(ctx, memory, files); err != nil {
		return err
	}
	faults := 0
	for _, tokens := range windows {
		of, err := r.play(ctx, tokens, disk, memory)
		if err != nil {
			return err
		}
		b, err := resolve(tokens)
		if err != nil {
			return err
		}
		if err := r.write(tokens, b, of); err != nil {
			return err
		}
		for _, n := range r.sum(of, "").faults {
			faults += n
		}
	}
	if faults > 0 {
		return fmt.Errorf("%d contexts broke a rule", faults)
	}
	fmt.Fprintln(r.out, "Every context kept its pairs, anchor, signatures, budget and count of calls, hashed to what the client computed, and was the same when assembled again, on the other store and after a restart.")
	return nil
}

// play replays every session under one budget, and then checks all of them again after a restart.
func (r *report) play(ctx context.Context, tokens uint64, disk, memory *daemon) (map[*session]figures, error) {
	runs := make([]*run, len(r.sessions))
	each := func(do func(context.Context, *run) error) error {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(workers)
		for _, run := range runs {
			group.Go(func() error { return do(ctx, run) })
		}
		return group.Wait()
	}
	for i, s := range r.sessions {
		runs[i] = newRun(s, fmt.Sprintf("play/%d/s%d", tokens, i), tokens)
		runs[i].policy = r.policy
	}
	if err := each(func(ctx context.Context, run *run) error { return run.play(ctx, disk, memory) }); err != nil {
		return nil, err
	}
	if err := disk.restart(ctx); err != nil {
		return nil, err
	}
	if err := each(func(ctx context.Context, run *run) error { return run.again(ctx, disk) }); err != nil {
		return nil, err
	}
	of := map[*session]figures{}
	for i, s := range r.sessions {
		run := runs[i]
		hashes := make([]string, len(run.seen))
		for i, seen := range run.seen {
			hashes[i] = seen.hash
		}
		changed, err := r.hashes.hold(s, r.policy, "contextd", tokens, hashes)
		if err != nil {
			return nil, err
		}
		if changed >= 0 {
			run.fault(s.Steps[min(changed, len(s.Steps)-1)], "other bytes than in the file of hashes", "")
		}
		of[s] = run.figures
	}
	return of, nil
}

// write prints the tables of one budget.
func (r *report) write(tokens uint64, b budget.Budget, of map[*session]figures) error {
	fmt.Fprintf(r.out, "## %d tokens (target %d)\n\n", tokens, b.Target)
	var formats []string
	for _, s := range r.sessions {
		formats = append(formats, s.Format)
	}
	slices.Sort(formats)
	var rows []row
	for _, format := range slices.Compact(formats) {
		rows = append(rows, r.row(format, of, format))
	}
	rows = append(rows, r.row("all", of, ""))
	if err := writeTable(r.out, "contextd, by format", rows); err != nil {
		return err
	}
	total := r.sum(of, "")
	writeCounts(r.out, "prefix changes by cause", total.Causes)
	writeCounts(r.out, "refused because of", total.Reasons)
	writeCounts(r.out, "RULES BROKEN", total.faults)
	writeExamples(r.out, total.examples)
	fmt.Fprintln(r.out)

	rows = []row{r.row("contextd", of, ""), r.row("everything", r.everything, "")}
	for _, s := range simple {
		of, err := r.local(b, func() (evaluate.Policy, error) { return s.make(b), nil })
		if err != nil {
			return err
		}
		rows = append(rows, r.row(s.name, of, ""))
	}
	rows[1].figures.Over = r.overBudget(b.Target)
	if err := writeTable(r.out, "policy", rows); err != nil {
		return err
	}
	fmt.Fprintln(r.out)
	return nil
}

// overBudget is at how many steps the whole log exceeds the target.
func (r *report) overBudget(target uint64) int {
	n := 0
	for _, s := range r.sessions {
		conv := reduce.NewConversation(r.gauge)
		next := 0
		for _, st := range s.Steps {
			for ; next < st.Before; next++ {
				conv.Append(s.Events[next])
			}
			if conv.Tokens() > target {
				n++
			}
		}
	}
	return n
}
