package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newProjections(c *client) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "projections",
		Aliases: []string{"projection"},
		Short:   "List recorded contexts and rebuild them",
		Args:    onlySubcommands,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.newListProjections(), c.newReplay())
	return cmd
}

func (c *client) newListProjections() *cobra.Command {
	limit, brief := uint(0), false
	cmd := &cobra.Command{
		Use:     "list SESSION",
		Aliases: []string{"ls"},
		Short:   "List the recorded projections of a session",
		Example: "  contextd projections list my-session --json",
		Args:    cobra.ExactArgs(1),
		RunE: c.runReading(func(cmd *cobra.Command, api api, args []string) error {
			req := &contextdv1.ListProjectionsRequest{SessionId: args[0], Brief: brief || !c.output.structured()}
			list := c.newListing(cmd, "PROJECTION", "AS OF", "KEPT", "SHORTENED", "DROPPED", "RECLAIMED", "TIME", "HASH")
			n := uint(0)
			return list.end(eachProjection(cmd.Context(), api, req, func(p *contextdv1.Projection) error {
				err := list.add(p, p.GetProjectionId(), p.GetAsOfSeq(), p.GetKeptCount(), p.GetRedactedCount(), p.GetDroppedCount(), p.GetReclaimedTokens(), when(p.GetTime()), p.GetPrefixHash())
				if n++; err == nil && n == limit {
					return errEnough
				}
				return err
			}))
		}),
	}
	cmd.Flags().UintVar(&limit, "limit", 0, "list at most so many `projections`; 0 for all")
	cmd.Flags().BoolVar(&brief, "brief", false, "leave the lists of events and of pointers out of JSON and YAML: each is as long as the session")
	return cmd
}

// eachProjection calls f for the projections of a request, page after page.
func eachProjection(ctx context.Context, api api, req *contextdv1.ListProjectionsRequest, f func(*contextdv1.Projection) error) error {
	for {
		page, err := api.ListProjections(ctx, req)
		if err != nil {
			return err
		}
		for _, p := range page.GetProjections() {
			if err := f(p); err != nil {
				return err
			}
		}
		if req.PageToken = page.GetNextPageToken(); req.GetPageToken() == "" {
			return nil
		}
	}
}

func (c *client) newReplay() *cobra.Command {
	return &cobra.Command{
		Use:   "replay SESSION PROJECTION",
		Short: "Rebuild a recorded projection from the log and compare",
		Long: `Rebuild a recorded projection from the log and compare. The exit code is 0
where the hash is the same and 1 where it is not.`,
		Example: "  contextd projections replay my-session p42-0001",
		Args:    cobra.ExactArgs(2),
		RunE: c.runReading(func(cmd *cobra.Command, api api, args []string) error {
			resp, err := api.ReplayProjection(cmd.Context(), &contextdv1.ReplayProjectionRequest{SessionId: args[0], ProjectionId: args[1]})
			if err != nil {
				return err
			}
			if c.output.structured() {
				err = c.output.write(cmd.OutOrStdout(), resp)
			} else {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "recorded %s\nreplayed %s\n", resp.GetRecorded().GetPrefixHash(), resp.GetReplayed().GetPrefixHash())
			}
			if err == nil && !resp.GetSame() {
				err = fmt.Errorf("projection %s is not what it was: %s", args[1], resp.GetDifference())
			}
			return err
		}),
	}
}
