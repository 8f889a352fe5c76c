package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newCompact(c *client) *cobra.Command {
	req := &contextdv1.CompactSessionRequest{}
	settings := &requestSettings{}
	var target, summaryFile, undo string
	cmd := &cobra.Command{
		Use:   "compact SESSION",
		Short: "Make a session's context smaller now",
		Long: `Make a session's context smaller now. The log keeps everything. The decision applies
to every later context of the session and its forks, whatever its budget, model,
format or policy, until --undo reverts it. The budget and the policy by which it
is measured are those of the flags, or else of the newest recorded context, whoever asked
for it; "contextd assemble --preview" records none.

If there was nothing to do, or a hook of the runtime vetoed it, the output says so
and the exit code is 0. If the context is still over --target-tokens, what remains is
listed, and the exit code is 4.`,
		Example: `  contextd compact my-session
  contextd compact my-session --strategy summarize --keep-last-turns 4 --target-tokens 8k
  contextd compact my-session --summary-file notes.txt
  contextd compact my-session --undo`,
		Args: cobra.ExactArgs(1),
	}
	cmd.RunE = c.run(func(cmd *cobra.Command, api api, args []string) (err error) {
		if cmd.Flags().Changed("undo") {
			return c.undoCompaction(cmd, api, args[0], undo)
		}
		req.SessionId = args[0]
		if target != "" {
			if req.TargetTokens, err = config.ParseTokens(target); err != nil {
				return usageError{fmt.Errorf("--target-tokens: %w", err)}
			}
		}
		if req.Summary, err = readText(cmd, summaryFile); err != nil {
			return usageError{fmt.Errorf("--summary-file: %w", err)}
		}
		if req.Budget, req.Policy, err = settings.resolve(); err != nil {
			return err
		}
		c.noteBudget(cmd, api, req.GetBudget())
		resp, err := api.compaction.CompactSession(cmd.Context(), req)
		if err != nil {
			return err
		}
		if c.output.structured() {
			err = c.output.write(cmd.OutOrStdout(), resp)
		} else {
			writeOutcome(cmd.OutOrStdout(), resp)
		}
		if over := resp.GetOverTargetTokens(); err == nil && over > 0 {
			return &missedError{resp.GetTargetTokens(), over}
		}
		return err
	})
	f := cmd.Flags()
	settings.bind(f)
	f.StringVar(&req.Mode, "mode", "", "`who` asks: manual, host, auto, workflow, worker or resume_digest; manual if not given")
	f.StringVar(&req.Strategy, "strategy", "", "`strategy`: mask, window or summarize; the cheapest that suffices if not given")
	f.Uint32Var(&req.KeepLastTurns, "keep-last-turns", 0, "newest `turns` that stay as they are; 0 for the policy's")
	f.StringVar(&target, "target-tokens", "", "most `tokens` that the context may have afterwards, such as 8000 or 8k; if not given, as few as the strategy or the summary allows, else what a cut that pays leaves")
	f.StringVar(&summaryFile, "summary-file", "", "`file` with a summary of your own, so that no model is asked; - for stdin")
	f.StringVar(&req.Instructions, "instructions", "", "`text` of instructions for the summarizer")
	f.StringVar(&req.InstructionsMode, "instructions-mode", "", "`mode`: extend the daemon's own prompt by the instructions, or replace it; extend if not given")
	f.StringVar(&undo, "undo", "", "revert the newest compaction in effect, or that of an `event` and all later ones: --undo=40")
	f.Lookup("undo").NoOptDefVal = undoNewest
	return cmd
}

// undoNewest is the value of --undo when no event is given.
const undoNewest = "newest"

// missedError reports that a compaction did not reach its target.
type missedError struct{ target, over uint64 }

func (e *missedError) Error() string {
	return fmt.Sprintf("the context is %s over the target of %d", counted(e.over, "token"), e.target)
}

func (c *client) undoCompaction(cmd *cobra.Command, api api, session, undo string) (err error) {
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Name != "undo" && err == nil {
			err = usageError{fmt.Errorf("--%s cannot be used with --undo", f.Name)}
		}
	})
	if err != nil {
		return err
	}
	req := &contextdv1.UndoCompactionRequest{SessionId: session}
	if undo != undoNewest {
		if req.CompactionSeq, err = strconv.ParseUint(undo, 10, 64); err != nil || req.CompactionSeq == 0 {
			return usageError{fmt.Errorf("--undo: %q is not the number of an event", undo)}
		}
	}
	resp, err := api.compaction.UndoCompaction(cmd.Context(), req)
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	switch {
	case c.output.structured():
		return c.output.write(w, resp)
	case resp.GetUndoSeq() == 0:
		fmt.Fprintf(w, "nothing to do: %s\n", resp.GetDetail())
	default:
		seqs := make([]string, len(resp.GetUndoneSeqs()))
		for i, seq := range resp.GetUndoneSeqs() {
			seqs[i] = strconv.FormatUint(seq, 10)
		}
		fmt.Fprintf(w, "reverted by event %d: the compactions of events %s\n", resp.GetUndoSeq(), strings.Join(seqs, ", "))
	}
	return nil
}

// readText reads a file, or stdin for "-"; "" gives no text. An empty file is an error, since the daemon
// would take an empty summary as a request to have a model write one.
func readText(cmd *cobra.Command, name string) (string, error) {
	var text []byte
	var err error
	switch name {
	case "":
		return "", nil
	case "-":
		text, err = io.ReadAll(cmd.InOrStdin())
	default:
		text, err = readInput(cmd.Context(), name)
	}
	if err == nil && strings.TrimSpace(string(text)) == "" {
		err = fmt.Errorf("%s is empty", name)
	}
	return string(text), err
}

func writeOutcome(w io.Writer, r *contextdv1.CompactSessionResponse) {
	if r.GetOutcome() != "compacted" {
		fmt.Fprintf(w, "%s: %s\n", strings.ReplaceAll(r.GetOutcome(), "_", " "), orNone(r.GetDetail()))
		writeInTheWay(w, r)
		return
	}
	fmt.Fprintf(w, "compacted by %s: %s became %d, %s removed, decided by event %d\n",
		r.GetStrategy(), counted(r.GetTokensBefore(), "token"), r.GetTokensAfter(), counted(r.GetArchivedMessages(), "message"), r.GetCompactionSeq())
	if s := r.GetSummary(); s != nil {
		fmt.Fprintf(w, "summary %s of events %d to %d, by %s\n", s.GetSummaryId(), s.GetFromSeq(), s.GetToSeq(), s.GetSummarizer())
	}
	reminders := r.GetReminders()
	for _, fate := range []struct {
		what  string
		names []string
	}{
		{"expired", reminders.GetExpired()}, {"replaced", reminders.GetDeduped()},
		{"dropped with their turns", reminders.GetCompacted()}, {"preserved", reminders.GetPreserved()},
	} {
		if len(fate.names) > 0 {
			fmt.Fprintf(w, "reminders %s: %s\n", fate.what, oneLine(strings.Join(fate.names, ", "), 0))
		}
	}
	if r.GetDetail() != "" {
		fmt.Fprintln(w, r.GetDetail())
	}
	writeInTheWay(w, r)
}

// writeInTheWay lists what kept a compaction from reaching its target.
func writeInTheWay(w io.Writer, r *contextdv1.CompactSessionResponse) {
	if r.GetOverTargetTokens() == 0 {
		return
	}
	fmt.Fprintf(w, "%s over the target of %d; what remains:\n", counted(r.GetOverTargetTokens(), "token"), r.GetTargetTokens())
	for _, part := range r.GetInTheWay() {
		at := ""
		if part.GetSeq() > 0 {
			at = fmt.Sprintf(" at event %d", part.GetSeq())
		}
		fmt.Fprintf(w, "%8d  %s%s\n", part.GetTokens(), part.GetWhat(), at)
	}
}
