package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newRecord(c *client) *cobra.Command {
	req := &contextdv1.RecordModelCallRequest{}
	cmd := &cobra.Command{
		Use:   "record SESSION",
		Short: "Record what the provider counted for a model call",
		Long: `Record what the provider counted for a model call. Estimates are corrected by it,
and "contextd explain" says what the model saw in it.`,
		Example: `  contextd record my-session --projection p42-0001 --input-tokens 23118 --cache-read-tokens 21900
  contextd record my-session --projection p42-0001 --rejected`,
		Args: cobra.ExactArgs(1),
		RunE: c.run(func(cmd *cobra.Command, api api, args []string) error {
			req.SessionId = args[0]
			resp, err := api.RecordModelCall(cmd.Context(), req)
			if err != nil {
				return err
			}
			if c.output.structured() {
				return c.output.write(cmd.OutOrStdout(), resp)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "estimates are multiplied by %.3f from now on\n", resp.GetCalibration())
			return err
		}),
	}
	f := cmd.Flags()
	f.StringVar(&req.ProjectionId, "projection", "", "the `projection` that was sent; without it nothing is corrected")
	f.StringVar(&req.Model, "model", "", "`name` of the model; that of the projection's budget if not given")
	f.Uint64Var(&req.InputTokens, "input-tokens", 0, "all `tokens` of the prompt, including cached ones")
	f.Uint64Var(&req.CacheReadTokens, "cache-read-tokens", 0, "of these, `tokens` read from the provider's cache")
	f.Uint64Var(&req.CacheWriteTokens, "cache-write-tokens", 0, "of these, `tokens` written to the provider's cache")
	f.Uint64Var(&req.OutputTokens, "output-tokens", 0, "`tokens` that the model wrote")
	f.StringVar(&req.StopReason, "stop-reason", "", "why the model stopped, in the provider's `term`")
	f.BoolVar(&req.RejectedOverBudget, "rejected", false, "the provider refused the prompt as too long")
	cmd.MarkFlagsOneRequired("projection", "input-tokens", "output-tokens", "stop-reason", "rejected")
	return cmd
}
