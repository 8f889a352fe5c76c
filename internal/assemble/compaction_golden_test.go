package assemble_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
)

var rewrite = flag.Bool("rewrite", false, "write golden files instead of comparing with them")

// TestCompactedContexts compares whole contexts before a compaction, after it and after it
// was taken back, under two budgets and in two formats, with golden files.
func TestCompactedContexts(t *testing.T) {
	for name, c := range map[string]assemble.Compaction{
		"mask": {Strategy: reduce.Mask}, "window": {Strategy: reduce.Drop}, "summarize": {Strategy: reduce.Summarize},
		"own_summary": {Summary: "The first three handlers do not leak."},
	} {
		t.Run(name, func(t *testing.T) {
			store := memlog.New()
			defer closeStore(t, store)
			w := started(t, store, &scripted{answer: writes})
			push(t, store, "s", opening()...)
			for i := range 6 {
				push(t, store, "s", turn(i+9)...)
			}
			var out strings.Builder
			shown := map[string]string{}
			show := func(when string) {
				for _, room := range []uint64{2_000, 1_000_000} {
					for _, format := range []string{render.NameContextd, "anthropic"} {
						req := summarized(byModel)
						req.Budget = budget.Spec{MaxTokens: room, Tokenizer: budget.TokenizerO200K, Format: format}
						got := w.assemble(req)
						key := fmt.Sprintf("%d %s", room, format)
						text := lines(got.Messages)
						if when != "taken back" { // then it is what it was before
							fmt.Fprintf(&out, "== %s, %s: %d tokens of %d\n%s", when, key, got.Budget.Projected, got.Budget.Target, text)
						}
						if when == "taken back" && text != shown[key] {
							t.Errorf("%s: taken back, the context is not what it was", key)
						}
						if when == "compacted" && room > 2_000 && text == shown[key] {
							t.Errorf("%s: compacted, the context is what it was", key)
						}
						if when == "before" {
							shown[key] = text
						}
					}
				}
			}
			show("before") // formats of one budget share its cuts, so the first look changes the others
			out.Reset()
			show("before")
			c.SessionID, c.Request, c.Measured, c.KeepLastTurns = "s", viewed(""), true, 2
			c.Request.Policy.Summaries.Summarizer = byModel
			if w.compacted(c) == nil {
				t.Fatal("there is nothing to do")
			}
			show("compacted")
			if _, err := w.engine.Undo(context.Background(), "s", 0, func(ctx context.Context, c *eventlog.Compaction) error {
				_, err := mark(ctx, t, store, "s", c)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			show("taken back")
			mustReplay(t, w, "s")
			path := filepath.Join("testdata", "compacted", name+".txt")
			if *rewrite {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("not as in %s (rewrite with -args -rewrite):\n%s", path, diff)
			}
		})
	}
}
