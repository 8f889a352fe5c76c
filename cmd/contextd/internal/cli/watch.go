package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newWatch(c *client) *cobra.Command {
	req := &contextdv1.WatchLifecycleRequest{}
	limit := uint(0)
	var after []string
	cmd := &cobra.Command{
		Use:   "watch [SESSION...]",
		Short: "Show contexts, compactions, summaries and other events of sessions, as they happen",
		Long: `Show contexts, compactions, summaries, reminders and breakers, one event per line, until
it is interrupted: what happens from when it prints "watching" to stderr and, with --after, what
happened before. Nothing happens in a store while --embedded has it, so that needs --after.
Events of a session are numbered; the number follows the time.

The numbers of a session that was deleted and created again begin at 1. With the incarnation
that --json prints, as in 12@18eaa1702158735c-1, a number of another session is refused; with the
time as well, as in 12@18eaa1702158735c-1@2026-03-01T09:00:00.123456789Z, also that of another
event in a store that was set back to an earlier state.`,
		Example: `  contextd watch
  contextd watch my-session --after 0 --json | jq -r .type
  contextd watch a b --after a=12 --after b=3`,
	}
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if c.embedded != "" && len(after) == 0 {
			return usageError{errors.New("nothing happens in a store while --embedded has it: set --after to show what happened, or watch a daemon")}
		}
		return nil
	}
	cmd.RunE = c.runReading(func(cmd *cobra.Command, api api, args []string) error {
		req.SessionIds = args
		for _, text := range after {
			cursor, err := cursorOf(text, req.GetSessionIds())
			if err != nil {
				return usageError{fmt.Errorf("--after: %w", err)}
			}
			req.After = append(req.After, cursor)
		}
		return c.watch(cmd, api, req, limit)
	})
	sessionsFirst(cmd, cobra.ArbitraryArgs)
	cmd.Flags().StringSliceVar(&after, "after", nil, "start after this event `number` of the session, 0 for the first, or NUMBER@INCARNATION[@TIME]; SESSION=NUMBER where there are several; may be repeated")
	cmd.Flags().UintVar(&limit, "limit", 0, "end after so many `events`; 0 for never")
	return cmd
}

// watch prints lifecycle events of sessions, at most limit of them; 0 is no limit.
func (c *client) watch(cmd *cobra.Command, api api, req *contextdv1.WatchLifecycleRequest, limit uint) error {
	if c.embedded != "" {
		sessions := slices.Clone(req.GetSessionIds())
		for _, cursor := range req.GetAfter() {
			sessions = append(sessions, cursor.GetSessionId())
		}
		for _, session := range sessions { // which nobody can make meanwhile
			if _, err := api.GetSession(cmd.Context(), &contextdv1.GetSessionRequest{SessionId: session}); err != nil {
				return err
			}
		}
	}
	stream, err := api.compaction.WatchLifecycle(cmd.Context(), req)
	if err != nil {
		return err
	}
	// Once the headers arrive, no later event is missed.
	if headers, err := stream.Header(); err == nil && headers != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "watching")
	}
	for _, session := range req.GetSessionIds() {
		noteMissing(cmd, api, session, "nothing happens to it until it is made")
	}
	for n := uint(0); limit == 0 || n < limit; n++ {
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
}

// cursorOf parses "NUMBER", for the only session, or "SESSION=NUMBER"; either may end with "@INCARNATION", or with
// "@INCARNATION@TIME".
func cursorOf(text string, sessions []string) (*contextdv1.LifecycleCursor, error) {
	session, digits, named := strings.Cut(text, "=")
	if !named {
		if digits = text; len(sessions) != 1 {
			return nil, fmt.Errorf("%q names no session: use SESSION=NUMBER, or give one session", text)
		}
		session = sessions[0]
	}
	digits, incarnation, _ := strings.Cut(digits, "@")
	incarnation, happened, dated := strings.Cut(incarnation, "@")
	number, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is not the number of an event", digits)
	}
	cursor := &contextdv1.LifecycleCursor{SessionId: session, Number: number, Incarnation: incarnation}
	if dated {
		t, err := time.Parse(time.RFC3339Nano, happened)
		if err != nil {
			return nil, fmt.Errorf("%q is not the time of an event, as --json prints it", happened)
		}
		cursor.Time = timestamppb.New(t)
	}
	return cursor, nil
}

func (c *client) writeLifecycle(w io.Writer, e *contextdv1.LifecycleEvent) error {
	if c.output.structured() {
		return c.output.write(w, e)
	}
	number := "-"
	if e.GetNumber() > 0 {
		number = strconv.FormatUint(e.GetNumber(), 10)
	}
	line := fmt.Sprintf("%s  %4s  %-20s  %s ", when(e.GetTime()), number, e.GetType(), dash(e.GetSessionId()))
	for _, k := range sortedKeys(e.GetAttributes()) {
		line += " " + k + "=" + e.GetAttributes()[k]
	}
	_, err := fmt.Fprintln(w, strings.TrimSpace(oneLine(line, 0)))
	return err
}
