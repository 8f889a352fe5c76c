package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// runner holds what all cases share.
type runner struct {
	contextd  Contextd
	installed map[string]string // by harness, where its CLI is
	homes     string            // below which each case has its own
	keep      bool
}

func main() {
	var names []string
	for _, h := range harnesses {
		names = append(names, h.Name())
	}
	list := flag.String("harnesses", strings.Join(names, ","), "which to check")
	corpus := flag.String("corpus", "", "folder of recorded sessions; none if empty")
	cache := flag.String("cache", filepath.Join(".build", "resumecheck"), "where the CLIs are installed")
	only := flag.String("run", "", "regular expression of the cases to check")
	keep := flag.Bool("keep", false, "keep the homes and the requests, and say where")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := check(ctx, *list, *corpus, *cache, *only, *keep)
	if err != nil {
		fmt.Fprintln(os.Stderr, "resumecheck:", err)
	}
	if err != nil || !ok {
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

func check(ctx context.Context, list, corpus, cache, only string, keep bool) (bool, error) {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return false, err
	}
	if cache, err = filepath.Abs(cache); err != nil {
		return false, err
	}
	r := &runner{installed: map[string]string{}, keep: keep}
	if r.homes, err = os.MkdirTemp("", "resumecheck-"); err != nil {
		return false, err
	}
	if !keep {
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
		h, err := byName(strings.TrimSpace(name))
		if err != nil {
			return false, err
		}
		if r.installed[h.Name()], err = install(ctx, cache, h.Name()); err != nil {
			return false, err
		}
		fine, err := r.all(ctx, h, corpus, wanted)
		if err != nil {
			return false, err
		}
		ok = ok && fine
	}
	return ok, nil
}

// all checks the cases of a harness, and prints a line for each.
func (r *runner) all(ctx context.Context, h Harness, corpus string, wanted *regexp.Regexp) (bool, error) {
	cases, err := casesOf(h, corpus)
	if err != nil {
		return false, err
	}
	checked, failed := 0, 0
	for _, c := range cases {
		if !wanted.MatchString(c.Name) {
			continue
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		checked++
		s, err := c.session(ctx, r.contextd, h)
		outcome := Outcome{Err: err}
		if err == nil {
			outcome = r.Check(ctx, h, s)
		}
		if outcome.Failed() {
			failed++
		}
		fmt.Printf("%s %s  %s: %s\n", h.Name(), pinned(h.Name()), c.Name, outcome)
	}
	fmt.Printf("%s %s: %d cases, %d failed\n", h.Name(), pinned(h.Name()), checked, failed)
	return failed == 0 && checked > 0, nil
}

// String is the end of a case's line.
func (o Outcome) String() string {
	switch {
	case o.Err != nil:
		return "FAILED: " + strings.ReplaceAll(o.Err.Error(), "\n", "\n  ")
	case o.Difference != "":
		return fmt.Sprintf("DIFFERENT after %d turns: %s", o.Same, o.Difference)
	default:
		return fmt.Sprintf("%d turns, same; %d the harness's own", o.Same, o.Own)
	}
}
