package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// prompt is the prompt with which every session is resumed.
const prompt = "Say ok, and nothing else."

// Outcome is the result of a case.
type Outcome struct {
	Comparison
	// Err is set if there was nothing to compare.
	Err error
	// Why is the reason for not counting the case; empty if it counts.
	Why string
	// Known is the reason for a known difference.
	Known string
}

// Failed reports whether the result is not the expected one.
func (o Outcome) Failed() bool {
	if o.Known != "" {
		return o.Err != nil || o.Difference == ""
	}
	return o.Why == "" && (o.Err != nil || o.Difference != "")
}

// outcome checks a case. If the CLI resumes neither the file nor the harness's own original, the format is
// too old or the file damaged, so the writer is not at fault.
func (r *runner) outcome(ctx context.Context, h Harness, c Case) Outcome {
	s, err := c.session(ctx, r.contextd, h)
	if err != nil {
		return Outcome{Err: err}
	}
	o := r.Check(ctx, h, s)
	o.Known = known[h.Name()+" "+c.Name]
	if o.Err != nil && c.Original != nil && ctx.Err() == nil {
		if original, err := sessionOf(h, c.Original); err == nil {
			original.ID = cmp.Or(original.ID, s.ID)
			turns, err := r.resume(ctx, h, original)
			if err != nil || !slices.ContainsFunc(turns, func(t Turn) bool { return h.Own(t) == "" && t.Body != prompt }) {
				o.Why = "the harness does not resume its own file either"
			}
		}
	}
	return o
}

// Check resumes a session, and compares the request to the model with contextd's view.
func (r *runner) Check(ctx context.Context, h Harness, s Session) Outcome {
	view, err := r.contextd.View(ctx, s.File, h.Name())
	if err != nil {
		return Outcome{Err: err}
	}
	if err := markForeign(view, h, s); err != nil {
		return Outcome{Err: err}
	}
	if r, ok := h.(Reviser); ok {
		view = r.Revise(view, s)
	}
	request, err := r.resume(ctx, h, s)
	if err != nil {
		return Outcome{Err: err}
	}
	return Outcome{Comparison: Compare(h, view, request, prompt)}
}

// resume runs the CLI on a session, and returns the conversation that it sent.
func (r *runner) resume(ctx context.Context, h Harness, s Session) (turns []Turn, err error) {
	dir, err := os.MkdirTemp(r.homes, h.Name()+"-")
	if err != nil {
		return nil, err
	}
	if r.keep {
		fmt.Fprintln(os.Stderr, "kept:", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	home := Home{Dir: filepath.Join(dir, "home"), Work: filepath.Join(dir, "work"), Installed: r.installed[h.Name()]}
	for _, d := range []string{home.Dir, home.Work} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, err
		}
	}
	provider, err := StartProvider()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, provider.Close()) }()
	home.URL = provider.URL()
	if err := h.Place(home, s); err != nil {
		return nil, err
	}
	if p, ok := h.(Preparer); ok {
		run := func(c Command) error {
			out, err := runCLI(ctx, home, c)
			if err != nil {
				return fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, tail(out))
			}
			return nil
		}
		if err := p.Prepare(ctx, home, s, run); err != nil {
			return nil, err
		}
	}
	out, failed := runCLI(ctx, home, h.Command(home, s, prompt))
	r.keepRequests(dir, provider.Requests(), out)
	if outside := provider.Outside(); len(outside) > 0 {
		slices.Sort(outside)
		return nil, fmt.Errorf("it tried to reach %s", strings.Join(slices.Compact(outside), ", "))
	}
	turns, err = theRequest(h, provider.Requests())
	if err != nil || failed != nil {
		return nil, fmt.Errorf("%w\n%s", errors.Join(err, failed), tail(out))
	}
	return turns, nil
}

// keepRequests writes the bodies of requests next to a home that is kept.
func (r *runner) keepRequests(dir string, requests []Request, out []byte) {
	if !r.keep {
		return
	}
	for i, q := range requests {
		name := filepath.Join(dir, fmt.Sprintf("request-%d.json", i+1))
		if err := os.WriteFile(name, q.Body, 0o600); err != nil {
			fmt.Fprintln(os.Stderr, "resumecheck:", err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "output.txt"), out, 0o600); err != nil {
		fmt.Fprintln(os.Stderr, "resumecheck:", err)
	}
}

// theRequest finds the request that continues the session: the only one with the prompt as a turn of its own.
// Other requests, such as for a title, quote the prompt or do without it.
func theRequest(h Harness, requests []Request) ([]Turn, error) {
	var found [][]Turn
	for _, q := range requests {
		turns, err := h.Turns(q.Body)
		if err != nil {
			return nil, fmt.Errorf("the request: %w in %.2000s", err, q.Body)
		}
		if slices.Contains(turns, Turn{Role: "user", Kind: Text, Body: prompt}) {
			found = append(found, turns)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%d of %d requests hold the prompt", len(found), len(requests))
	}
	return found[0], nil
}

// known are the cases in which a CLI is known to send something else, by harness and the end of the case's
// name, and why. They are printed but do not fail. A known case without a difference fails, so that it is
// removed from this list.
var known = map[string]string{
	"claude rewritten claude/kept":                                                 "damaged: parents close a circle, and Claude Code goes on from the newest chain alone",
	"claude original claude/obra__episodic-memory/large-conversation":              spokenInto,
	"claude rewritten claude/obra__episodic-memory/large-conversation":             spokenInto,
	"codex converted claude/queued":                                                "the user spoke while a tool ran: contextd puts results directly after their calls, Codex leaves them in place",
	"pi original pi/badlogic__pi-mono/session":                                     "damaged: two entries on one line, which pi passes over and contextd reads",
	"opencode original opencode/The-Best-Codes__bestcodes.dev/360aa9943d-0__full":  textFirst,
	"opencode rewritten opencode/The-Best-Codes__bestcodes.dev/360aa9943d-0__full": textFirst,
	"opencode shrunk opencode/The-Best-Codes__bestcodes.dev/360aa9943d-0__full":    textFirst,
}

const spokenInto = "the user spoke while the model did: contextd joins a reply, Claude Code leaves its parts in place"

const textFirst = "the model wrote after its calls: OpenCode puts the text before them for Anthropic, contextd does not"
