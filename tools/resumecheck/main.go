package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// runner is what all cases share.
type runner struct {
	contextd  Contextd
	installed map[string]string // the folder of the CLI, by harness
	homes     string            // the folder for the homes of cases
	keep      bool
	jobs      int
}

func main() {
	var names []string
	for _, fresh := range harnesses {
		names = append(names, fresh().Name())
	}
	list := flag.String("harnesses", strings.Join(names, ","), "which to check")
	corpus := flag.String("corpus", "", "folder of recorded sessions; none if empty")
	cache := flag.String("cache", filepath.Join(".build", "resumecheck"), "where the CLIs are installed")
	only := flag.String("run", "", "regular expression of the cases to check")
	keep := flag.Bool("keep", false, "keep the homes and the requests, and say where")
	jobs := flag.Int("jobs", 2, "how many CLIs run at once")
	flag.Parse()
	if *jobs < 1 {
		fmt.Fprintln(os.Stderr, "resumecheck: -jobs must be at least 1")
		os.Exit(2)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := check(ctx, &runner{installed: map[string]string{}, keep: *keep, jobs: *jobs}, *list, *corpus, *cache, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "resumecheck:", err)
	}
	if err != nil || !ok {
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

func check(ctx context.Context, r *runner, list, corpus, cache, only string) (bool, error) {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return false, err
	}
	if cache, err = filepath.Abs(cache); err != nil {
		return false, err
	}
	if r.homes, err = os.MkdirTemp("", "resumecheck-"); err != nil {
		return false, err
	}
	if !r.keep {
		defer os.RemoveAll(r.homes)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return false, err
	}
	if r.contextd, err = buildContextd(ctx, cache); err != nil {
		return false, err
	}
	ok := true
	for name := range strings.SplitSeq(list, ",") {
		fresh, err := byName(strings.TrimSpace(name))
		if err != nil {
			return false, err
		}
		name = fresh().Name()
		if r.installed[name], err = install(ctx, cache, name); err != nil {
			return false, err
		}
		fine, err := r.all(ctx, fresh, corpus, wanted)
		if err != nil {
			return false, err
		}
		ok = ok && fine
	}
	return ok, nil
}

// all checks the cases of a harness, and prints a line for each.
func (r *runner) all(ctx context.Context, fresh func() Harness, corpus string, wanted *regexp.Regexp) (bool, error) {
	h := fresh()
	cases, err := casesOf(h, corpus)
	if err != nil {
		return false, err
	}
	cases = slices.DeleteFunc(cases, func(c Case) bool { return !wanted.MatchString(c.Name) })
	outcomes := make([]chan Outcome, len(cases))
	free := make(chan struct{}, r.jobs)
	for i, c := range cases {
		outcomes[i] = make(chan Outcome, 1)
		go func() {
			free <- struct{}{}
			outcomes[i] <- r.outcome(ctx, fresh(), c)
			<-free
		}()
	}
	failed, turns, excused := 0, 0, 0
	for i, c := range cases {
		o := <-outcomes[i]
		if ctx.Err() != nil {
			continue // the check was interrupted
		}
		turns += o.Same
		if o.Failed() {
			failed++
		} else if o.Why+o.Known != "" {
			excused++
		}
		fmt.Printf("%s %s  %s: %s\n", h.Name(), pinned(h.Name()), c.Name, o)
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	fmt.Printf("%s %s: %d cases, %d turns the same, %d failed, %d known or not to be resumed\n",
		h.Name(), pinned(h.Name()), len(cases), turns, failed, excused)
	return failed == 0 && len(cases) > 0, nil
}

// String is the result at the end of a case's line.
func (o Outcome) String() string {
	switch {
	case o.Why != "":
		return o.Why
	case o.Known != "" && o.Difference != "":
		return fmt.Sprintf("KNOWN after %d turns: %s", o.Same, o.Known)
	case o.Known != "" && o.Err == nil:
		return "THE SAME, although a difference is said to be known: " + o.Known
	case o.Err != nil:
		return "FAILED: " + strings.ReplaceAll(o.Err.Error(), "\n", "\n  ")
	case o.Difference != "":
		return fmt.Sprintf("DIFFERENT after %d turns: %s", o.Same, o.Difference)
	default:
		return fmt.Sprintf("%d turns, same; the harness's own: %s", o.Same, ownTurns(o.Own))
	}
}

// ownTurns lists what a CLI added.
func ownTurns(own map[string]int) string {
	if len(own) == 0 {
		return "none"
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(own)) {
		parts = append(parts, fmt.Sprintf("%d %s", own[what], what))
	}
	return strings.Join(parts, "; ")
}
