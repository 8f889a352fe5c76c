package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func newSessions(c *client) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "sessions",
		Aliases: []string{"session"},
		Short:   "List, create, fork and delete sessions",
		Args:    onlySubcommands,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.newList(), c.newGet(), c.newCreate(), c.newFork(), c.newDelete())
	return cmd
}

func (c *client) newList() *cobra.Command {
	req := &contextdv1.ListSessionsRequest{}
	limit, order := uint(0), "id"
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List sessions",
		Example: `  contextd sessions list
  contextd sessions ls --sort updated --limit 10 -o wide
  contextd sessions list --label agent=coder --json`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = c.runReading(func(cmd *cobra.Command, api api, _ []string) error {
		compare, ok := sessionOrders[order]
		if !ok {
			return usageError{fmt.Errorf("--sort: must be one of %s", strings.Join(sortedKeys(sessionOrders), ", "))}
		}
		all, err := listSessions(cmd.Context(), api, req, compare, limit)
		if err != nil {
			return err
		}
		return c.writeSessions(cmd, all)
	})
	f := cmd.Flags()
	bindLabels(f, &req.Labels, "only sessions with this label")
	f.UintVar(&limit, "limit", 0, "list at most so many `sessions`; 0 for all")
	f.StringVar(&order, "sort", order, "`order`: id, or the newest or largest first: "+strings.Join(sortedKeys(sessionOrders), ", "))
	complete(cmd, "sort", fixed(sortedKeys(sessionOrders)))
	return cmd
}

// sessionOrders are the orders for --sort; nil is the daemon's order.
var sessionOrders = map[string]func(a, b *contextdv1.Session) int{
	"id": nil,
	"updated": func(a, b *contextdv1.Session) int {
		return b.GetUpdateTime().AsTime().Compare(a.GetUpdateTime().AsTime())
	},
	"created": func(a, b *contextdv1.Session) int {
		return b.GetCreateTime().AsTime().Compare(a.GetCreateTime().AsTime())
	},
	"events": func(a, b *contextdv1.Session) int { return cmp.Compare(b.GetHeadSeq(), a.GetHeadSeq()) },
	"turns":  func(a, b *contextdv1.Session) int { return cmp.Compare(b.GetTurns(), a.GetTurns()) },
	"bytes":  func(a, b *contextdv1.Session) int { return cmp.Compare(b.GetLogBytes(), a.GetLogBytes()) },
}

// listSessions returns the first sessions in an order, at most limit; 0 is all.
func listSessions(ctx context.Context, api api, req *contextdv1.ListSessionsRequest, compare func(a, b *contextdv1.Session) int, limit uint) ([]*contextdv1.Session, error) {
	var all []*contextdv1.Session
	err := eachSession(ctx, api, req, func(s *contextdv1.Session) error {
		all = append(all, s)
		if compare == nil && uint(len(all)) == limit {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	if compare != nil {
		slices.SortStableFunc(all, compare)
	}
	if limit > 0 {
		all = all[:min(limit, uint(len(all)))]
	}
	return all, nil
}

func (c *client) writeSessions(cmd *cobra.Command, all []*contextdv1.Session) error {
	header := []any{"SESSION", "EVENTS", "TURNS", "BYTES", "UPDATED", "LABELS"}
	wide := c.output == outputWide
	if wide {
		header = append(header, "CREATED", "FORKED FROM", "CHAIN HEAD")
	}
	list := c.newListing(cmd, header...)
	for _, s := range all {
		row := []any{s.GetSessionId(), s.GetHeadSeq(), s.GetTurns(), s.GetLogBytes(), when(s.GetUpdateTime()), labels(s.GetLabels())}
		if wide {
			row = append(row, when(s.GetCreateTime()), dash(s.GetParentSessionId()), dash(s.GetChainHead()))
		}
		if err := list.add(s, row...); err != nil {
			return err
		}
	}
	return list.end(nil)
}

// eachSession calls f for the sessions of a request, page after page.
func eachSession(ctx context.Context, api api, req *contextdv1.ListSessionsRequest, f func(*contextdv1.Session) error, opts ...grpc.CallOption) error {
	for {
		page, err := api.ListSessions(ctx, req, opts...)
		if err != nil {
			return err
		}
		for _, s := range page.GetSessions() {
			if err := f(s); err != nil {
				return err
			}
		}
		if req.PageToken = page.GetNextPageToken(); req.GetPageToken() == "" {
			return nil
		}
	}
}

func (c *client) newGet() *cobra.Command {
	return &cobra.Command{
		Use:     "get SESSION",
		Short:   "Show a session",
		Example: "  contextd sessions get my-session",
		Args:    cobra.ExactArgs(1),
		RunE: c.runReading(func(cmd *cobra.Command, api api, args []string) error {
			resp, err := api.GetSession(cmd.Context(), &contextdv1.GetSessionRequest{SessionId: args[0]})
			if err != nil {
				return err
			}
			return c.writeSession(cmd, resp.GetSession())
		}),
	}
}

func bindLabels(f *pflag.FlagSet, to *map[string]string, usage string) {
	f.StringToStringVar(to, "label", nil, usage+", as `key=value`; may be repeated")
	f.Lookup("label").DefValue = "" // not "[]"
}

func (c *client) newCreate() *cobra.Command {
	req := &contextdv1.CreateSessionRequest{}
	var settings requestSettings
	cmd := &cobra.Command{
		Use:   "create SESSION",
		Short: "Create an empty session with its own settings",
		Long: `Create an empty session with its own settings.

Appending to a session that does not exist creates it too, with the daemon's
settings.`,
		Example: `  contextd sessions create my-session --label agent=coder --max-tokens 32000
  contextd sessions create my-session --policy '{tool_results: {default: {turns: 2}}}'`,
		Args: cobra.ExactArgs(1),
		RunE: c.runCreating(func(cmd *cobra.Command, api api, args []string) (err error) {
			req.SessionId = args[0]
			if req.Budget, req.Policy, err = settings.resolve(); err != nil {
				return err
			}
			c.noteBudget(cmd, api, req.GetBudget())
			resp, err := api.CreateSession(cmd.Context(), req)
			if err != nil {
				return err
			}
			return c.writeSession(cmd, resp.GetSession())
		}),
	}
	bindLabels(cmd.Flags(), &req.Labels, "a label")
	settings.bind(cmd.Flags())
	return cmd
}

func (c *client) newFork() *cobra.Command {
	req := &contextdv1.ForkSessionRequest{}
	cmd := &cobra.Command{
		Use:     "fork SESSION NEW-SESSION",
		Short:   "Create a session that shares another's events up to a point",
		Example: "  contextd sessions fork my-session what-if --at 12",
		Args:    cobra.ExactArgs(2),
		RunE: c.run(func(cmd *cobra.Command, api api, args []string) error {
			req.SessionId, req.NewSessionId = args[0], args[1]
			resp, err := api.ForkSession(cmd.Context(), req)
			if err != nil {
				return err
			}
			return c.writeSession(cmd, resp.GetSession())
		}),
	}
	cmd.Flags().Uint64Var(&req.AtSeq, "at", 0, "last `event` that is shared; 0 for the newest")
	return cmd
}

func (c *client) newDelete() *cobra.Command {
	wait, expected := false, uint64(0)
	cmd := &cobra.Command{
		Use:   "delete SESSION...",
		Short: "Delete sessions and everything derived from them; forks are not affected",
		Long: `Delete sessions and everything derived from them; forks are not affected. Their bytes are
erased from the daemon's disk soon after; --wait waits until they are. With --json, each
that was deleted is a line with its id.`,
		Example: `  contextd sessions delete my-session
  contextd sessions delete my-session --expected-head 40`,
		Args: cobra.MinimumNArgs(1),
		RunE: c.run(func(cmd *cobra.Command, api api, args []string) error {
			req := &contextdv1.DeleteSessionRequest{WaitUntilErased: wait}
			if cmd.Flags().Changed("expected-head") {
				if len(args) > 1 {
					return usageError{errors.New("--expected-head is that of one session: give one alone")}
				}
				req.ExpectedHead = &expected
			}
			for _, id := range args {
				req.SessionId = id
				if _, err := api.DeleteSession(cmd.Context(), req); err != nil {
					return err
				}
				if c.output.structured() {
					if err := c.output.write(cmd.OutOrStdout(), &contextdv1.Session{SessionId: id}); err != nil {
						return err
					}
					continue
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "deleted %s\n", id)
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until nothing of them is left on the disk")
	cmd.Flags().Uint64Var(&expected, "expected-head", 0, "delete only if the newest `event` is this one; 0 for an empty session")
	return cmd
}

func (c *client) writeSession(cmd *cobra.Command, s *contextdv1.Session) error {
	if c.output.structured() {
		return c.output.write(cmd.OutOrStdout(), s)
	}
	t := newTable(cmd, "session", s.GetSessionId())
	t.row("events", s.GetHeadSeq())
	t.row("turns", s.GetTurns())
	t.row("bytes", s.GetLogBytes())
	t.row("created", when(s.GetCreateTime()))
	t.row("updated", when(s.GetUpdateTime()))
	t.row("labels", labels(s.GetLabels()))
	if s.GetParentSessionId() != "" {
		from := fmt.Sprintf("%s at event %d", s.GetParentSessionId(), s.GetForkSeq())
		if s.GetForkSeq() == 0 {
			from = s.GetParentSessionId() + ", of which it shares no event"
		}
		t.row("forked from", from)
	}
	if s.GetBudget() != nil {
		t.row("budget", compactJSON(s.GetBudget()))
	}
	if s.GetPolicy() != nil {
		t.row("policy", compactJSON(s.GetPolicy()))
	}
	return t.flush()
}
