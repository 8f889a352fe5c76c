package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newPolicyShow(c *client) *cobra.Command {
	file := ""
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show what a policy of the configuration says",
		Long: `Show what a policy of the configuration says, as YAML or, with --json, as JSON. The
configuration is that of CONTEXTD_CONFIG or --config, not of a daemon elsewhere.
What a policy does not say is as docs/policies.md has it under "Defaults".`,
		Example: `  contextd policy show default
  contextd policy show careful --config /etc/contextd.yaml`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completePolicy,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		settings, err := c.program.loadConfig(file)
		if err != nil {
			return err
		}
		set, err := settings.PolicySet()
		if err != nil {
			return err
		}
		name := args[0]
		if !slices.Contains(set.Names(), name) {
			return mistyped(status.Errorf(codes.NotFound, "there is no policy %q in the configuration", name), name, set.Names())
		}
		shown, configured := settings.Policies[name]
		if !configured {
			shown = &contextdv1.Policy{Name: name}
			fmt.Fprintln(cmd.ErrOrStderr(), "it is built in: docs/policies.md has it")
		}
		if c.output == outputJSON {
			return c.output.write(cmd.OutOrStdout(), shown)
		}
		return outputYAML.write(cmd.OutOrStdout(), shown)
	}
	bindConfig(cmd, &file)
	return cmd
}
