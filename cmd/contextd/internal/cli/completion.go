package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/policy"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// completionTimeout is how long a daemon may take to answer somebody who presses TAB.
const completionTimeout = 2 * time.Second

type completer = cobra.CompletionFunc

// complete registers the completion of a flag's values, if the command has the flag.
func complete(cmd *cobra.Command, flag string, f completer) {
	if cmd.Flags().Lookup(flag) != nil || cmd.PersistentFlags().Lookup(flag) != nil {
		cobra.CheckErr(cmd.RegisterFlagCompletionFunc(flag, f))
	}
}

// fixed completes from a list.
func fixed(values []string) completer {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

// completions registers completion for a command and its subcommands: of session arguments, and of the flags
// that mean the same on all commands.
func (c *client) completions(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		c.completions(sub)
	}
	c.completeArgs(cmd)
	if cmd.PersistentFlags().Lookup("output") != nil {
		complete(cmd, "output", fixed(outputFormats()))
	}
	if f := cmd.Flags().Lookup("format"); f != nil && f.Value.Type() == (formatFlag{}).Type() {
		complete(cmd, "format", fixed(formatNames()))
	}
	complete(cmd, "tokenizer", fixed(budget.Tokenizers()))
	complete(cmd, "model", c.completeModel)
	complete(cmd, "policy", c.completePolicy)
	complete(cmd, "projection", c.completeProjection)
}

// completeArgs completes session ids: for the first argument, or for all if the command takes SESSION....
func (c *client) completeArgs(cmd *cobra.Command) {
	_, args, _ := strings.Cut(cmd.Use, " ")
	all := strings.HasPrefix(strings.TrimPrefix(args, "["), "SESSION...")
	if !all && !strings.HasPrefix(args, "SESSION") {
		return
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch {
		case all || len(args) == 0:
			return c.completeSession(cmd)
		case len(args) == 1 && strings.HasSuffix(cmd.Use, " PROJECTION"):
			return c.completeProjection(cmd, args, "")
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// asking completes with what f gets from the daemon. Errors only mean that nothing is completed.
func (c *client) asking(cmd *cobra.Command, f func(ctx context.Context, api api) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	c.reads = true
	conn, closeConn, err := c.connect(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	found, err := f(ctx, newAPI(conn))
	if closeConn() != nil || err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

func (c *client) completeSession(cmd *cobra.Command) ([]string, cobra.ShellCompDirective) {
	return c.asking(cmd, func(ctx context.Context, api api) ([]string, error) {
		page, err := api.ListSessions(ctx, &contextdv1.ListSessionsRequest{PageSize: mostListed})
		return sessionIDs(page), err
	})
}

func (c *client) completeProjection(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.asking(cmd, func(ctx context.Context, api api) ([]string, error) {
		page, err := api.ListProjections(ctx, &contextdv1.ListProjectionsRequest{SessionId: args[0], Brief: true})
		var ids []string
		for _, p := range page.GetProjections() {
			ids = append(ids, p.GetProjectionId())
		}
		return ids, err
	})
}

func (c *client) completeModel(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	settings, err := c.settings()
	if err != nil {
		settings = config.Default()
	}
	models, err := settings.Registry()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return modelNames(models), cobra.ShellCompDirectiveNoFileComp
}

// completePolicy completes the names of the policies in the configuration.
func (c *client) completePolicy(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	settings, err := c.settings()
	if err != nil {
		return policy.Set{}.Names(), cobra.ShellCompDirectiveNoFileComp
	}
	set, err := settings.PolicySet()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return set.Names(), cobra.ShellCompDirectiveNoFileComp
}
