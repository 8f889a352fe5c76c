package cli

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/contextd/contextd/internal/evaluate"
)

// writeEvaluation writes a report.
func writeEvaluation(cmd *cobra.Command, o outputFormat, r evaluate.Report) error {
	switch {
	case o == outputHTML:
		return writeEvaluationPage(cmd.OutOrStdout(), r)
	case o.structured():
		return writeLines(cmd.OutOrStdout(), o, []evaluate.Report{r})
	}
	out := cmd.OutOrStdout()
	for _, f := range r.Failed {
		fmt.Fprintf(cmd.ErrOrStderr(), "failed: %s: %s\n", oneLine(f.Path, 0), oneLine(f.Error, 0))
	}
	fmt.Fprintf(out, "%s of %s, %s; %s, %s; %s\n", counted(r.Sessions, "session"), counted(r.Files, "transcript"),
		counted(r.Calls, "model call"), counted(r.Compactions, "recorded compaction"), counted(r.Others, "other file"), evalFailed(r))
	writeEvalModels(cmd, r)
	if r.Sessions == 0 {
		return nil
	}
	fmt.Fprintln(out)
	if err := writeEvalRows(cmd, r.Policies); err != nil || !isWide(cmd) {
		return err
	}
	for _, h := range r.Harnesses {
		fmt.Fprintf(out, "\n%s: %s, %s\n", h.Harness, counted(h.Sessions, "session"), counted(h.Calls, "model call"))
		if err := writeEvalRows(cmd, h.Policies); err != nil {
			return err
		}
	}
	for _, s := range r.Largest {
		fmt.Fprintf(out, "\n%s: %s, window %d\n", oneLine(filepath.Base(s.File), 0), counted(s.Calls, "model call"), s.Window)
		if err := writeEvalRows(cmd, s.Rows); err != nil {
			return err
		}
	}
	return nil
}

// leastModels is how many models a table lists unless it is wide.
const leastModels = 5

func writeEvalModels(cmd *cobra.Command, r evaluate.Report) {
	out, most := cmd.OutOrStdout(), len(r.Models)
	if most > leastModels && !isWide(cmd) {
		most = leastModels
	}
	for _, m := range r.Models[:most] {
		fmt.Fprintf(out, "  %s: %s, window %d, target %d, %s\n", oneLine(cmp.Or(m.Model, "no model named"), 60), counted(m.Sessions, "session"), m.Window, m.Target, evalPrice(m))
	}
	if more := len(r.Models) - most; more > 0 {
		fmt.Fprintf(out, "  and %s, with -o wide\n", counted(more, "other model"))
	}
	if r.Priced > 0 && r.Priced < r.Sessions {
		fmt.Fprintf(out, "US$ is of %s with a known price.\n", counted(r.Priced, "session"))
	}
}

func evalPrice(m evaluate.SessionModel) string {
	if m.InputUSD == nil {
		return "price not known"
	}
	return fmt.Sprintf("$%g for a million tokens", *m.InputUSD)
}

func evalFailed(r evaluate.Report) string {
	if len(r.Failed) == 0 {
		return "all could be read"
	}
	return counted(len(r.Failed), "file") + " could not be read"
}

func writeEvalRows(cmd *cobra.Command, rows []evaluate.Row) error {
	t := newTable(cmd, "POLICY", "COST", "US$", "OVER", "REFUSED", "CHANGES", "RECALL", "EVIDENCE", "EDITS", "CALLS", "CACHED", "LARGEST")
	for _, r := range rows {
		t.row(r.Policy, evalShare(r.Cost), evalUSD(r.USD), r.OverWindow, r.Refused, r.PrefixChanges,
			evalShare(r.Recall), evalShare(r.Evidence), evalShare(r.Edits), evalShare(r.CallsVisible), evalPercent(r.Cached, r.Tokens), r.Largest)
	}
	return t.flush()
}

func evalShare(x *float64) string {
	if x == nil {
		return dash("")
	}
	return fmt.Sprintf("%.3f", *x)
}

func evalUSD(x *float64) string {
	if x == nil {
		return dash("")
	}
	if *x < 0.1 {
		return fmt.Sprintf("%.4f", *x)
	}
	return fmt.Sprintf("%.2f", *x)
}

func evalPercent(a, b uint64) string {
	if b == 0 {
		return dash("")
	}
	return fmt.Sprintf("%.0f%%", 100*float64(a)/float64(b))
}
