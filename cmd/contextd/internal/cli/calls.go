package cli

import (
	"github.com/spf13/cobra"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newCalls(c *client) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "calls SESSION",
		Short: "List what the provider counted for model calls",
		Long: `List the model calls of a session that were recorded, the oldest first, with what the
provider counted and what was estimated.`,
		Example: `  contextd calls my-session
  contextd calls my-session --json | jq .cache_read_tokens`,
		RunE: c.runReading(func(cmd *cobra.Command, api api, args []string) error {
			list := c.newListing(cmd, "CALL", "PROJECTION", "MODEL", "INPUT", "CACHE READ", "CACHE WRITTEN", "OUTPUT", "ESTIMATED", "ENDED", "TIME")
			req := &contextdv1.ListModelCallsRequest{SessionId: args[0], PageSize: 1000}
			for {
				page, err := api.ListModelCalls(cmd.Context(), req)
				if err != nil {
					return err
				}
				for _, m := range page.GetCalls() {
					err := list.add(m, m.GetNumber(), dash(m.GetProjectionId()), dash(m.GetModel()), m.GetInputTokens(), m.GetCacheReadTokens(), m.GetCacheWriteTokens(),
						m.GetOutputTokens(), m.GetEstimatedTokens(), callEnded(m), when(m.GetTime()))
					if err != nil {
						return err
					}
				}
				if req.PageToken = page.GetNextPageToken(); req.GetPageToken() == "" {
					return list.end(nil)
				}
			}
		}),
	}
	sessionsFirst(cmd, cobra.ExactArgs(1))
	return cmd
}

// callEnded is the provider's stop reason, or says that the call was refused before it reached the model.
func callEnded(m *contextdv1.ModelCall) string {
	if m.GetRejectedOverBudget() {
		return "refused: too long"
	}
	return dash(m.GetStopReason())
}
