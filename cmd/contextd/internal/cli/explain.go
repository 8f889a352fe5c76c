package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newExplain(c *client) *cobra.Command {
	req := &contextdv1.ExplainCallRequest{}
	cmd := &cobra.Command{
		Use:   "explain SESSION [TEXT]",
		Short: "Say whether the model saw a text in a recorded call, and if not, why",
		Long: `Say whether the model saw a text in a recorded call, and if not, why.

TEXT is looked for letter by letter, in the log and in what contextd wrote: the
summary, the ledger, the index, quotations and reminders. A pointer such as
ctx:12.0 asks about the block that it names. Without TEXT the call is described,
with every decision about its context.

Calls are those of "contextd record" and RecordModelCall, counted from 1. Where none is
recorded, the newest projection is explained, or else the context that would be made now.`,
		Example: `  contextd explain my-session pkg/pool.go
  contextd explain my-session --call 17 ctx:12.0
  contextd explain my-session --call 17 --json`,
		RunE: c.runReading(func(cmd *cobra.Command, api api, args []string) error {
			if req.SessionId = args[0]; len(args) > 1 {
				req.Text = args[1]
			}
			resp, err := api.ExplainCall(cmd.Context(), req)
			if err != nil {
				return err
			}
			if c.output.structured() {
				return c.output.write(cmd.OutOrStdout(), resp)
			}
			return writeCall(cmd, req, resp)
		}),
	}
	sessionsFirst(cmd, cobra.RangeArgs(1, 2))
	cmd.Flags().Uint32Var(&req.Call, "call", 0, "`number` of the call; 0 for the newest")
	return cmd
}

func writeCall(cmd *cobra.Command, req *contextdv1.ExplainCallRequest, resp *contextdv1.ExplainCallResponse) error {
	w, p := cmd.OutOrStdout(), resp.GetProjection()
	describeCall(w, req.GetSessionId(), resp.GetCall(), p)
	describeShadow(w, p.GetShadow())
	switch {
	case req.GetText() != "":
		fmt.Fprintln(w)
		return writeSightings(cmd, req.GetText(), resp)
	case p != nil:
		fmt.Fprintln(w)
		return writeDecisions(cmd, p)
	default:
		return nil
	}
}

func describeCall(w io.Writer, session string, call *contextdv1.ModelCall, p *contextdv1.Projection) {
	if call == nil {
		what := "this is projection " + p.GetProjectionId() + ","
		if p.GetProjectionId() == "" {
			what = "nor is a context; this is the one that would be made now,"
		}
		fmt.Fprintf(w, "no call of %s is recorded; %s as of event %d\n", session, what, p.GetAsOfSeq())
		return
	}
	fmt.Fprintf(w, "call %d of %s, model %s", call.GetNumber(), session, dash(oneLine(call.GetModel(), 0)))
	if p == nil {
		fmt.Fprint(w, ", from no projection: what was sent is not known\n")
	} else {
		fmt.Fprintf(w, ", from projection %s as of event %d\n", p.GetProjectionId(), p.GetAsOfSeq())
	}
	if call.GetRejectedOverBudget() {
		fmt.Fprintln(w, "the provider refused it as too long")
	}
	fmt.Fprintf(w, "tokens: %d estimated, %d counted by the provider (%d from its cache, %d into it), %d written by the model\n",
		call.GetEstimatedTokens(), call.GetInputTokens(), call.GetCacheReadTokens(), call.GetCacheWriteTokens(), call.GetOutputTokens())
	if call.GetCollapsedThroughSeq() > 0 {
		fmt.Fprintf(w, "cut:    the groups through event %d, with summary %s\n", call.GetCollapsedThroughSeq(), orNone(call.GetSummaryId()))
	}
	if call.GetEvictedAsOfSeq() > 0 {
		fmt.Fprintf(w, "old:    results evicted by age as of event %d\n", call.GetEvictedAsOfSeq())
	}
}

func describeShadow(w io.Writer, s *contextdv1.ShadowProjection) {
	switch {
	case s == nil:
	case s.GetOverBudget():
		fmt.Fprintf(w, "shadow: %s would have refused, over the budget\n", s.GetPolicy())
	default:
		fmt.Fprintf(w, "shadow: %s would have sent %d tokens in %s, %d of them as before; prefix %s\n",
			s.GetPolicy(), s.GetTokens(), counted(s.GetMessageCount(), "message"), s.GetStableTokens(), rewritten(s.GetBrokenBy()))
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func writeSightings(cmd *cobra.Command, text string, resp *contextdv1.ExplainCallResponse) error {
	w := cmd.OutOrStdout()
	verdict := "was not seen"
	if resp.GetSeen() {
		verdict = "was seen"
	}
	fmt.Fprintf(w, "%q %s\n", text, verdict)
	if len(resp.GetSightings()) == 0 {
		if !resp.GetSeen() {
			fmt.Fprintln(w, "it is neither in the log nor in what contextd wrote")
		}
		return nil
	}
	t := newTable(cmd, "EVENT", "BLOCK", "SHOWN", "SEEN", "POINTER", "WHY")
	for _, s := range resp.GetSightings() {
		event, block := "-", "-"
		if s.GetSeq() > 0 {
			event, block = fmt.Sprint(s.GetSeq()), fmt.Sprint(s.GetBlock())
		}
		seen := "no"
		if s.GetSeen() {
			seen = "yes"
		}
		t.row(event, block, s.GetShown(), seen, dash(s.GetPointer()), s.GetReason())
	}
	return t.flush()
}
