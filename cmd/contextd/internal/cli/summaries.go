package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newSummaries(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "summaries SESSION",
		Short: "List the summaries of a session, and the state of the summarizers",
		Long: `List the summaries of a session, newest first, and the state of the summarizers in the
daemon's configuration. One whose breaker is open is not asked.`,
		Example: `  contextd summaries my-session
  contextd summaries my-session --json | jq -r '.summaries[0].text'`,
		Args: cobra.ExactArgs(1),
		RunE: c.runReading(func(cmd *cobra.Command, api api, args []string) error {
			resp, err := allSummaries(cmd.Context(), api, args[0])
			if err != nil {
				return err
			}
			if c.output.structured() {
				return c.output.write(cmd.OutOrStdout(), resp)
			}
			return writeSummaries(cmd, resp)
		}),
	}
}

// allSummaries joins the pages of a session's summaries.
func allSummaries(ctx context.Context, api api, session string) (*contextdv1.ListSummariesResponse, error) {
	all, req := &contextdv1.ListSummariesResponse{}, &contextdv1.ListSummariesRequest{SessionId: session, PageSize: 1000}
	for {
		page, err := api.compaction.ListSummaries(ctx, req)
		if err != nil {
			return nil, err
		}
		all.Summaries, all.Summarizers = append(all.GetSummaries(), page.GetSummaries()...), page.GetSummarizers()
		if req.PageToken = page.GetNextPageToken(); req.GetPageToken() == "" {
			return all, nil
		}
	}
}

// summaryRunes is how much of a summary's text a row shows.
const summaryRunes = 60

func writeSummaries(cmd *cobra.Command, resp *contextdv1.ListSummariesResponse) error {
	t := newTable(cmd, "SUMMARY", "EVENTS", "BY", "TOKENS IN", "OUT", "MADE", "TEXT")
	for _, s := range resp.GetSummaries() {
		t.row(s.GetSummaryId(), fmt.Sprintf("%d-%d", s.GetFromSeq(), s.GetToSeq()), s.GetSummarizer(),
			s.GetInputTokens(), s.GetOutputTokens(), when(s.GetCreateTime()), oneLine(strings.TrimSpace(s.GetText()), summaryRunes))
	}
	if err := t.flush(); err != nil || len(resp.GetSummarizers()) == 0 {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout())
	t = newTable(cmd, "SUMMARIZER", "BREAKER", "FAILURES")
	for _, s := range resp.GetSummarizers() {
		t.row(s.GetName(), s.GetBreaker(), s.GetConsecutiveFailures())
	}
	return t.flush()
}
