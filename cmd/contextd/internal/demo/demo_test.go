package demo_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/contextd/contextd/cmd/contextd/internal/demo"
)

// interruptible is a program's context, which ends with a signal.
func interruptible() context.Context {
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	return ctx
}

// runDemo runs the command and returns what it wrote.
func runDemo(t *testing.T, args ...string) string {
	t.Helper()
	// Files that the demo does not remove would be here.
	t.Setenv("TMPDIR", t.TempDir())
	var out, diagnostics bytes.Buffer
	cmd := demo.NewCommand()
	cmd.SetArgs(append([]string{}, args...)) // nil would mean the arguments of the test
	cmd.SetOut(&out)
	cmd.SetErr(&diagnostics)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("demo %q: %v\n%s%s", args, err, out.String(), diagnostics.String())
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("not removed: %v %v", left, err)
	}
	return out.String()
}

// replayed runs the demo with --json and returns its output.
func replayed(t *testing.T, args ...string) ([]demo.Turn, demo.Totals) {
	t.Helper()
	var turns []demo.Turn
	var totals *demo.Totals
	lines := bufio.NewScanner(strings.NewReader(runDemo(t, append(args, "--json")...)))
	for lines.Scan() {
		var end struct{ Totals *demo.Totals }
		if err := json.Unmarshal(lines.Bytes(), &end); err != nil {
			t.Fatal(err)
		}
		if end.Totals != nil {
			totals = end.Totals
			continue
		}
		var turn demo.Turn
		if err := json.Unmarshal(lines.Bytes(), &turn); err != nil {
			t.Fatal(err)
		}
		turns = append(turns, turn)
	}
	if totals == nil {
		t.Fatal("there are no totals")
	}
	return turns, *totals
}

func TestBundledSession(t *testing.T) {
	turns, totals := replayed(t)
	states := map[string]bool{}
	var tokens, all uint64
	var cost float64
	for i, turn := range turns {
		if turn.Turn != i+1 || !turn.HashOK || turn.ProjectedTokens > turn.TargetTokens || turn.VisibleCalls != turn.Calls {
			t.Errorf("turn %d is not as promised: %+v", i+1, turn)
		}
		states[turn.State] = true
		tokens += turn.ProjectedTokens
		all += turn.RawTokens
		cost += turn.Cost
	}
	if !states["green"] || !states["yellow"] || !states["red"] {
		t.Errorf("the budget is too loose to show anything: states %v", states)
	}
	if totals.Turns != len(turns) || totals.Tokens != tokens || totals.TokensAll != all || int(totals.Cost) != int(cost) {
		t.Errorf("the totals are not the sums of the turns: %+v", totals)
	}
	if totals.HashesOK != totals.Turns || totals.Replayed != totals.Turns || totals.OverTarget != 0 || totals.Orphans != 0 || len(totals.Problems) > 0 {
		t.Errorf("a check failed: %+v", totals)
	}
	if totals.Calls < 60 || totals.VisibleCalls != totals.Calls {
		t.Errorf("%d of %d calls are visible", totals.VisibleCalls, totals.Calls)
	}
	if totals.Pointers == 0 || totals.Resolved != totals.Pointers {
		t.Errorf("%d of %d pointers resolve", totals.Resolved, totals.Pointers)
	}
	if totals.PrefixChanges == 0 || totals.LargestAll <= totals.TargetTokens {
		t.Errorf("nothing was dropped: %+v", totals)
	}
	if totals.CostRatio >= 1 || totals.CostRatio <= 0 || totals.Tokens >= totals.TokensAll {
		t.Errorf("it saves nothing: %+v", totals)
	}
}

func TestReplaysAreTheSame(t *testing.T) {
	args := []string{"--session", filepath.Join("testdata", "small.jsonl"), "--max-tokens", "2400", "--json"}
	if a, b := runDemo(t, args...), runDemo(t, args...); a != b {
		t.Errorf("two replays differ:\n%s\n%s", a, b)
	}
}

func TestWithRoomForEverything(t *testing.T) {
	turns, totals := replayed(t, "--session", filepath.Join("testdata", "small.jsonl"), "--max-tokens", "1000k")
	for _, turn := range turns {
		if turn.Collapsed != 0 || turn.Reason == demo.Full {
			t.Errorf("turn %d: %+v", turn.Turn, turn)
		}
	}
	if totals.OverFrom != 0 {
		t.Errorf("everything fits, and yet: %+v", totals)
	}
}

func TestRefusesWhatIsNoSession(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := map[string]struct {
		args []string
		want string
	}{
		"no file":       {[]string{"--session", filepath.Join(dir, "none")}, "none: no such file"},
		"empty":         {[]string{"--session", write("empty", "\n\n")}, "empty: it holds no events"},
		"not JSON":      {[]string{"--session", write("words", "{}\nwords\n")}, "words: line 2"},
		"no number":     {[]string{"--max-tokens", "soup"}, "such as 32000 or 32k"},
		"too little":    {[]string{"--max-tokens", "50"}, "turn 1"},
		"refused event": {[]string{"--session", write("role", `{"message":{"blocks":[{"text":{"text":"x"}}]}}`)}, "role"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cmd := demo.NewCommand()
			cmd.SetArgs(tt.args)
			cmd.SetOut(t.Output())
			cmd.SetErr(t.Output())
			cmd.SilenceUsage = true
			err := cmd.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want it to say %q", err, tt.want)
			}
		})
	}
}

// stopper ends a context when something is written.
type stopper struct{ stop context.CancelFunc }

func (s stopper) Write(p []byte) (int, error) {
	s.stop()
	return len(p), nil
}

func TestInterruptedLeavesNothingBehind(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	cmd := demo.NewCommand()
	cmd.SetArgs([]string{"--delay", "1h"})
	cmd.SetOut(stopper{stop})
	cmd.SetErr(t.Output())
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	if err := cmd.ExecuteContext(ctx); err == nil {
		t.Error("an interrupted demo says that all went well")
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("not removed: %v %v", left, err)
	}
}

func TestKeepsItsDataWhereAsked(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	var hint bytes.Buffer
	cmd := demo.NewCommand()
	cmd.SetArgs([]string{"--keep", "--json", "--session", filepath.Join("testdata", "small.jsonl"), "--max-tokens", "2400"})
	cmd.SetOut(t.Output())
	cmd.SetErr(&hint)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "contextd-demo-*", "data"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v %v", kept, err)
	}
	if !strings.Contains(hint.String(), "--embedded "+kept[0]) {
		t.Errorf("%q does not say that it is %s", hint.String(), kept[0])
	}
}
