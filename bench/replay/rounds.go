package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/contextd/contextd/internal/evaluate"
)

// lanes are the runs of all backends under one budget.
type lanes struct {
	all  []*lane
	runs [][]*run // by lane and session
	// clients are the clients of the session that is being played, by lane.
	clients []*client
}

// backends replays every session against daemons that only differ in the model that writes their summaries.
// It never waits for a summary.
func (r *report) backends(ctx context.Context, names []string, windows []uint64, files []file) (err error) {
	if err := r.measureEverything(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "contextd-replay-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary, err := buildDaemon(ctx, dir)
	if err != nil {
		return err
	}
	if err := importAll(ctx, binary, dir, files); err != nil {
		return err
	}
	l := lanes{}
	defer func() {
		for _, lane := range l.all {
			err = errors.Join(err, lane.close())
		}
	}()
	for _, name := range names {
		lane, err := startLane(ctx, binary, dir, name)
		if err != nil {
			return err
		}
		l.all = append(l.all, lane)
	}
	took := make([][]time.Duration, len(l.all))
	faults := 0
	for _, tokens := range windows {
		if err := l.play(ctx, r.sessions, tokens); err != nil {
			return err
		}
		n, err := r.writeLanes(tokens, &l)
		if err != nil {
			return err
		}
		faults += n
		for i := range l.all {
			took[i] = append(took[i], l.took(i)...)
		}
	}
	if err := writeRatios(r.out, l.all, took); err != nil {
		return err
	}
	if faults > 0 {
		return fmt.Errorf("%d rules were broken", faults)
	}
	fmt.Fprintln(r.out, "\nEvery context kept the rules, was the same when assembled again and after a restart, and no span was summarised twice.")
	return nil
}

// importAll reads the events of all sessions through a daemon that is used for nothing else.
func importAll(ctx context.Context, binary, dir string, files []file) (err error) {
	d, err := startDaemon(ctx, binary, "memory", dir, "import")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	return importFiles(ctx, d, files)
}

// play replays every session under one budget, one after the other, and then checks all of them again after a
// restart.
func (l *lanes) play(ctx context.Context, sessions []*session, tokens uint64) error {
	l.runs, l.clients = make([][]*run, len(l.all)), make([]*client, len(l.all))
	turn := 0
	for n, s := range sessions {
		for i, lane := range l.all {
			lane.begin(n)
			run := newRun(s, fmt.Sprintf("backends/%d/s%d", tokens, n), tokens)
			l.runs[i], l.clients[i] = append(l.runs[i], run), run.client(lane.daemon)
		}
		for _, st := range s.Steps {
			if err := l.round(ctx, n, st, turn); err != nil {
				return err
			}
			turn++
		}
	}
	for i, lane := range l.all {
		if err := lane.daemon.restart(ctx); err != nil {
			return fmt.Errorf("%s: %w", lane.name, err)
		}
		for _, run := range l.runs[i] {
			if err := run.again(ctx, lane.daemon); err != nil {
				return fmt.Errorf("%s: %w", lane.name, err)
			}
		}
	}
	return nil
}

// round plays one step on every daemon, one after the other, so that other load on the machine affects all
// alike. Each round begins with another daemon. Contexts are compared and measured after the round, outside
// of the timing.
func (l *lanes) round(ctx context.Context, n int, st evaluate.Step, turn int) error {
	answers := make([]answer, len(l.all))
	each := func(do func(i int, run *run) error) error {
		for k := range l.all {
			i := (k + turn) % len(l.all)
			if err := do(i, l.runs[i][n]); err != nil {
				return fmt.Errorf("%s: %w", l.all[i].name, err)
			}
		}
		return nil
	}
	if err := each(func(i int, run *run) error { return run.advance(ctx, st, l.clients[i]) }); err != nil {
		return err
	}
	err := each(func(i int, run *run) (err error) {
		answers[i], err = run.assemble(ctx, st, l.clients[i])
		return err
	})
	if err != nil {
		return err
	}
	if err := each(func(i int, run *run) error { return run.repeat(ctx, st, l.clients[i], answers[i]) }); err != nil {
		return err
	}
	l.judge(n, st, answers)
	return nil
}

// judge checks and measures the answers; equal contexts are measured once.
func (l *lanes) judge(n int, st evaluate.Step, answers []answer) {
	sights := map[string]evaluate.Sight{}
	for i := range l.all {
		run := l.runs[i][n]
		run.meter.Sights = sights
		run.judge(st, answers[i])
	}
}

// took are the times of all assemblies of a lane.
func (l *lanes) took(i int) []time.Duration {
	var all []time.Duration
	for _, run := range l.runs[i] {
		all = append(all, run.took...)
	}
	return all
}
