package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newCompact(c *client) *cobra.Command {
	req := &contextdv1.CompactSessionRequest{}
	var target, summaryFile string
	cmd := &cobra.Command{
		Use:   "compact SESSION",
		Short: "Make a session's context smaller now",
		Long: `Make a session's context smaller now. The log keeps everything.

That there was nothing to do, or that a hook of the runtime vetoed it, is said and
is no failure.`,
		Example: `  contextd compact my-session
  contextd compact my-session --strategy summarize --keep-last-turns 4 --target-tokens 8k
  contextd compact my-session --summary-file notes.txt`,
		Args: cobra.ExactArgs(1),
	}
	cmd.RunE = c.run(func(cmd *cobra.Command, api api, args []string) (err error) {
		req.SessionId = args[0]
		if target != "" {
			if req.TargetTokens, err = parseTokens(target); err != nil {
				return usageError{fmt.Errorf("--target-tokens: %w", err)}
			}
		}
		if req.Summary, err = readText(cmd, summaryFile); err != nil {
			return usageError{fmt.Errorf("--summary-file: %w", err)}
		}
		resp, err := api.compaction.CompactSession(cmd.Context(), req)
		if err != nil {
			return err
		}
		if c.json {
			return writeJSON(cmd.OutOrStdout(), resp)
		}
		writeOutcome(cmd.OutOrStdout(), resp)
		return nil
	})
	f := cmd.Flags()
	f.StringVar(&req.Mode, "mode", "", "`who` asks: manual, host, auto, workflow, worker or resume_digest; manual where left out")
	f.StringVar(&req.Strategy, "strategy", "", "`strategy`: mask, window or summarize; the cheapest that suffices where left out")
	f.Uint32Var(&req.KeepLastTurns, "keep-last-turns", 0, "newest `turns` that stay as they are; 0 for the policy's")
	f.StringVar(&target, "target-tokens", "", "what the context may hold afterwards, in `tokens`, such as 8000 or 8k")
	f.StringVar(&summaryFile, "summary-file", "", "`file` with a summary of your own, so that no model is asked; - for stdin")
	f.StringVar(&req.Instructions, "instructions", "", "`text` that the summarizer is told beside the span")
	f.StringVar(&req.InstructionsMode, "instructions-mode", "", "`mode`: extend the daemon's own prompt by the instructions, or replace it; extend where left out")
	return cmd
}

// readText reads a file, or stdin for "-"; no name is no text. An empty file is an
// error: an empty summary would ask a model.
func readText(cmd *cobra.Command, name string) (string, error) {
	var text []byte
	var err error
	switch name {
	case "":
		return "", nil
	case "-":
		text, err = io.ReadAll(cmd.InOrStdin())
	default:
		text, err = os.ReadFile(name)
	}
	if err == nil && strings.TrimSpace(string(text)) == "" {
		err = fmt.Errorf("%s is empty", name)
	}
	return string(text), err
}

func writeOutcome(w io.Writer, r *contextdv1.CompactSessionResponse) {
	if r.GetOutcome() != "compacted" {
		fmt.Fprintf(w, "%s: %s\n", strings.ReplaceAll(r.GetOutcome(), "_", " "), orNone(r.GetDetail()))
		return
	}
	fmt.Fprintf(w, "compacted by %s: %d tokens became %d, %d messages left, marked by event %d\n",
		r.GetStrategy(), r.GetTokensBefore(), r.GetTokensAfter(), r.GetArchivedMessages(), r.GetCompactionSeq())
	if s := r.GetSummary(); s != nil {
		fmt.Fprintf(w, "summary %s of events %d to %d, by %s\n", s.GetSummaryId(), s.GetFromSeq(), s.GetToSeq(), s.GetSummarizer())
	}
	reminders := r.GetReminders()
	for _, fate := range []struct {
		what  string
		names []string
	}{
		{"expired", reminders.GetExpired()}, {"replaced", reminders.GetDeduped()},
		{"left with their turns", reminders.GetCompacted()}, {"preserved", reminders.GetPreserved()},
	} {
		if len(fate.names) > 0 {
			fmt.Fprintf(w, "reminders %s: %s\n", fate.what, oneLine(strings.Join(fate.names, ", "), 0))
		}
	}
	if r.GetDetail() != "" {
		fmt.Fprintln(w, r.GetDetail())
	}
}
