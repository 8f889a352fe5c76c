package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/budget/bpe"
	"github.com/contextd/contextd/internal/evaluate"
	"github.com/contextd/contextd/internal/reduce"
)

// The parameters of the measurement.
const (
	window     = 32_768 // tokens
	mostSteps  = 200    // of a session, to bound the time
	leastSteps = 40
	timedTurns = 11 // of a long session; the first does not count
	callBytes  = 1024
)

// options are the flags.
type options struct {
	corpus, program, python, openhands, node, dir, svg string
	every                                              int
	seconds                                            float64
}

func main() {
	var o options
	flag.StringVar(&o.corpus, "corpus", "", "folder of transcripts; empty for the made session alone")
	flag.IntVar(&o.every, "every", 12, "every nth session of the corpus")
	flag.StringVar(&o.program, "program", "bin/contextd", "the daemon")
	flag.StringVar(&o.python, "python", "", "the interpreter that has requirements.txt; empty for no libraries in Python")
	flag.StringVar(&o.openhands, "openhands", "", "the interpreter that has requirements-openhands.txt; empty for no OpenHands")
	flag.StringVar(&o.node, "node", "", "folder with node_modules and peers.mjs; empty for no libraries in JavaScript")
	flag.StringVar(&o.dir, "dir", "", "folder for the sessions and the contexts")
	flag.StringVar(&o.svg, "svg", "", "file for the plot")
	flag.Float64Var(&o.seconds, "seconds", 20, "time of a library for each session, after which it is left")
	flag.Parse()
	if err := run(context.Background(), o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) error {
	encoding, err := bpe.Open(budget.TokenizerO200K)
	if err != nil {
		return err
	}
	gauge := budget.NewGauge(encoding)
	sessions, err := made(o, gauge)
	if err != nil {
		return err
	}
	if err := writeSessions(filepath.Join(o.dir, "sessions.jsonl"), sessions); err != nil {
		return err
	}
	files, err := runPeers(ctx, o)
	if err != nil {
		return err
	}
	t := &table{rows: map[string]*row{}}
	if err := t.ours(ctx, o, sessions, gauge); err != nil {
		return err
	}
	for _, file := range files {
		if err := t.peers(file, sessions); err != nil {
			return err
		}
	}
	t.write(out)
	if o.svg == "" {
		return nil
	}
	return os.WriteFile(o.svg, []byte(t.plot()), 0o644)
}

// made returns the sessions: first those that are timed, then those that are measured.
func made(o options, gauge budget.Gauge) ([]*session, error) {
	var all []*session
	for _, n := range sizes {
		s, err := newSession(fmt.Sprintf("timed-%d", n), trace(n, callBytes), gauge)
		if err != nil {
			return nil, err
		}
		s.timed = n
		first := len(s.Steps) - timedTurns
		s.Earlier, s.Steps = s.Steps[:first], s.Steps[first:]
		all = append(all, s)
	}
	const steps, bytes = 60, 4096
	synthetic, err := newSession("made", trace(2*steps+3, bytes), gauge)
	if err != nil {
		return nil, err
	}
	all = append(all, synthetic)
	if o.corpus != "" {
		recorded, err := corpus(o.corpus, leastSteps, o.every, gauge)
		if err != nil {
			return nil, err
		}
		all = append(all, recorded...)
	}
	for _, s := range all {
		s.Steps = s.Steps[:min(len(s.Steps), mostSteps)]
		s.measured.Steps = slices.DeleteFunc(s.measured.Steps, func(st evaluate.Step) bool { return !slices.Contains(s.Steps, st.Before) })
	}
	return all, nil
}

func writeSessions(path string, sessions []*session) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, s := range sessions {
		if err := e.Encode(s); err != nil {
			return err
		}
	}
	return w.Flush()
}

// runPeers runs the libraries and returns the files with their contexts.
func runPeers(ctx context.Context, o options) (files []string, err error) {
	in, seconds := filepath.Join(o.dir, "sessions.jsonl"), fmt.Sprint(o.seconds)
	for _, of := range []struct {
		there bool
		args  []string
	}{
		{o.python != "", []string{o.python, "bench/peers/peers.py"}},
		{o.openhands != "", []string{o.openhands, "bench/peers/openhands_sdk.py"}},
		{o.node != "", []string{"node", filepath.Join(o.node, "peers.mjs")}},
	} {
		if !of.there {
			continue
		}
		file := filepath.Join(o.dir, filepath.Base(of.args[1])+".jsonl")
		cmd := exec.CommandContext(ctx, of.args[0], append(of.args[1:], seconds, in, file)...)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("%s: %w", of.args[1], err)
		}
		files = append(files, file)
	}
	return files, nil
}

// ours measures contextd: its contexts in this process, where they are the same as a daemon's, and the time
// that a daemon takes.
func (t *table) ours(ctx context.Context, o options, sessions []*session, gauge budget.Gauge) error {
	models, err := budget.NewModels()
	if err != nil {
		return err
	}
	b, err := budget.Spec{MaxTokens: window, Tokenizer: budget.TokenizerO200K}.Resolve(models)
	if err != nil {
		return err
	}
	t.target = b.Target
	for _, s := range sessions {
		if s.timed > 0 {
			continue
		}
		t.sessions++
		t.row("everything").add(evaluate.Measure(s.measured, gauge, &evaluate.Results{}, b.Target))
		for name, reduction := range map[string]reduce.Policy{"contextd (default)": reduce.DefaultPolicy(), "contextd, `frugal`": reduce.FrugalPolicy()} {
			p, err := evaluate.NewContextd(ctx, assemble.Policy{Reduction: reduction}, b, budget.Model{Prices: budget.DefaultPrices()})
			if err != nil {
				return err
			}
			policy := &checked{Policy: p, row: t.row(name)}
			t.row(name).add(evaluate.Measure(s.measured, gauge, policy, b.Target))
			if policy.err != nil {
				return policy.err
			}
		}
	}
	return timeDaemon(ctx, o, sessions, t.row("contextd (default)"))
}

// peers measures the contexts in a file.
func (t *table) peers(file string, sessions []*session) error {
	of := map[string]*session{}
	for _, s := range sessions {
		of[s.Name] = s
	}
	type place struct{ peer, session string }
	meters, figures, next := map[place]*evaluate.Meter{}, map[place]*evaluate.Figures{}, map[place]int{}
	err := readContexts(file, func(c sent) error {
		s := of[c.Session]
		if s == nil {
			return fmt.Errorf("nobody has the session %q", c.Session)
		}
		at := place{c.Peer, c.Session}
		step := next[at]
		next[at]++
		if step >= len(s.Steps) || s.Steps[step] != c.Step {
			return fmt.Errorf("%s is at step %d of %s", c.Peer, c.Step, c.Session)
		}
		r := t.row(c.Peer)
		if s.timed > 0 {
			if step > 0 {
				r.seconds[s.timed] = append(r.seconds[s.timed], c.Seconds)
			}
			return nil
		}
		if meters[at] == nil {
			f := evaluate.NewFigures()
			meters[at], figures[at] = &evaluate.Meter{}, &f
		}
		prompt, err := s.context(c)
		if err != nil {
			return err
		}
		bad, err := orphaned(prompt.JSON, s.answered(c.Step))
		if err != nil {
			return err
		}
		if bad {
			r.orphaned++
		}
		meters[at].Measure(figures[at], s.measured, s.measured.Steps[step], prompt, t.target)
		return nil
	})
	for at, f := range figures {
		t.row(at.peer).add(*f)
	}
	return err
}
