package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newWatch(c *client) *cobra.Command {
	req := &contextdv1.WatchLifecycleRequest{}
	limit := 0
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Show compactions, summaries and other events of sessions, as they happen",
		Long: `Show compactions, summaries, reminders and breakers, one event per line, from when
it prints "watching" to stderr until it is interrupted.`,
		Example: `  contextd watch
  contextd watch --session my-session --json | jq -r .type`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = c.run(func(cmd *cobra.Command, api api, _ []string) error {
		stream, err := api.compaction.WatchLifecycle(cmd.Context(), req)
		if err != nil {
			return err
		}
		// The headers say that nothing is missed from now on.
		if headers, err := stream.Header(); err == nil && headers != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), "watching")
		}
		for n := 0; limit == 0 || n < limit; n++ {
			resp, err := stream.Recv()
			if errors.Is(err, io.EOF) || cmd.Context().Err() != nil {
				return nil //nolint:nilerr // an interrupt is how a watcher ends
			}
			if err != nil {
				return err
			}
			if err := c.writeLifecycle(cmd.OutOrStdout(), resp.GetEvent()); err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Flags().StringSliceVar(&req.SessionIds, "session", nil, "only events of this `session`; may be repeated")
	cmd.Flags().IntVar(&limit, "limit", 0, "end after this many events; 0 for never")
	return cmd
}

func (c *client) writeLifecycle(w io.Writer, e *contextdv1.LifecycleEvent) error {
	if c.json {
		return writeJSON(w, e)
	}
	line := fmt.Sprintf("%s  %-18s  %s ", when(e.GetTime()), e.GetType(), dash(e.GetSessionId()))
	for _, k := range sortedKeys(e.GetAttributes()) {
		line += " " + k + "=" + e.GetAttributes()[k]
	}
	_, err := fmt.Fprintln(w, strings.TrimSpace(oneLine(line, 0)))
	return err
}
