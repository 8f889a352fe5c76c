package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// writeExplanation writes the decision on every event, and what each reducer did.
func writeExplanation(cmd *cobra.Command, h *contextdv1.ContextHeader) error {
	writeSummary(cmd.OutOrStdout(), styleOf(cmd), h)
	return writeDecisions(cmd, h.GetProjection())
}

func writeDecisions(cmd *cobra.Command, p *contextdv1.Projection) error {
	t := newTable(cmd, "EVENTS", "DECISION", "TOOL", "SAVED", "BY", "WHY")
	for _, d := range decisions(p) {
		t.row(d.events(), d.decision, dash(d.tool), d.savedText(), dash(d.by), d.why)
	}
	if err := t.flush(); err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout())
	t = newTable(cmd, "REDUCER", "BEFORE", "AFTER", "TOUCHED", "NOTE")
	for _, s := range p.GetSteps() {
		t.row(s.GetReducer(), s.GetTokensBefore(), s.GetTokensAfter(), s.GetTouched(), s.GetNote())
	}
	return t.flush()
}

func writeSummary(w io.Writer, style style, h *contextdv1.ContextHeader) {
	b, p := h.GetBudget(), h.GetProjection()
	fmt.Fprintf(w, "context of %s as of event %d: %s, projection %s\n",
		h.GetSessionId(), h.GetAsOfSeq(), counted(h.GetMessageCount(), "message"), dash(h.GetProjectionId()))
	fmt.Fprintf(w, "tokens: %d of %d (%s), %d unreduced, counted by %s\n",
		b.GetProjectedTokens(), b.GetTargetTokens(), style.state(b.GetState()), b.GetRawTokens(), b.GetTokenizer())
	fmt.Fprintf(w, "events: %d kept, %d of them shortened, %d dropped\n", p.GetKeptCount(), p.GetRedactedCount(), p.GetDroppedCount())
	if cache := h.GetCache(); cache != nil {
		fmt.Fprintf(w, "prefix: %s and %s as before; %s\n",
			counted(cache.GetStableMessages(), "message"), counted(cache.GetStableTokens(), "token"), rewritten(cache.GetBrokenBy()))
	}
	fmt.Fprintf(w, "hash:   %s\n\n", h.GetPrefixHash())
}

func rewritten(by string) string {
	if by == "" {
		return "unchanged"
	}
	return "rewritten by " + by
}

// decision is what was decided on a run of consecutive events, or on one block.
type decision struct {
	from, to uint64
	decision string
	tool, by string
	why      string
	saved    *uint64
}

func (d decision) events() string {
	if d.from == d.to {
		return fmt.Sprint(d.from)
	}
	return fmt.Sprintf("%d-%d", d.from, d.to)
}

func (d decision) savedText() string {
	if d.saved == nil {
		return "-"
	}
	return fmt.Sprint(*d.saved)
}

// decisions lists each event once, in order. Consecutive events that were kept or dropped are one entry.
func decisions(p *contextdv1.Projection) []decision {
	shortened := map[uint64][]*contextdv1.RedactionPointer{}
	for _, r := range p.GetRedactionPointers() {
		shortened[r.GetSourceSeq()] = append(shortened[r.GetSourceSeq()], r)
	}
	dropped := "its calls are in the ledger"
	if p.GetSummaryId() != "" {
		dropped += ", with summary " + p.GetSummaryId()
	}
	var out []decision
	add := func(d decision) {
		if n := len(out); n > 0 && d.by == "" && out[n-1].by == "" && out[n-1].decision == d.decision && out[n-1].to+1 == d.from {
			out[n-1].to = d.to
			return
		}
		out = append(out, d)
	}
	seqs := slices.Concat(p.GetKeptSeqs(), p.GetDroppedSeqs())
	slices.Sort(seqs)
	for _, seq := range seqs {
		_, left := slices.BinarySearch(p.GetDroppedSeqs(), seq)
		switch {
		case left:
			add(decision{from: seq, to: seq, decision: "dropped", why: dropped})
		case len(shortened[seq]) == 0:
			add(decision{from: seq, to: seq, decision: "kept"})
		default:
			for _, r := range shortened[seq] {
				saved := r.GetReclaimedTokens()
				add(decision{
					from: seq, to: seq, decision: r.GetDecision(), tool: r.GetToolName(), by: r.GetPolicy(),
					why: r.GetReason() + ", " + r.GetPointer(), saved: &saved,
				})
			}
		}
	}
	return out
}
