package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/contextd/contextd/cmd/contextd/internal/auth"
)

func (p Program) newToken() *cobra.Command {
	var name, tenant, out string
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make a bearer token",
		Long: `Make a bearer token. It is written to a new file that only its owner can read, and
its entry for the daemon's file of tokens to stdout; the entry has no secret.`,
		Example: `  contextd token --name ci --tenant team-a --out ci.token >> tokens.yaml
  contextd sessions list --token-file ci.token`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			token, entry, err := auth.NewToken(name, tenant)
			if err != nil {
				return usageError{err}
			}
			listed, err := yaml.Marshal([]auth.TokenEntry{entry})
			if err != nil {
				return err
			}
			if err := writeSecret(out, token+"\n"); err != nil {
				return fmt.Errorf("--out: %w", err)
			}
			_, err = cmd.OutOrStdout().Write(listed)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "`name` of whoever gets the token, for the daemon's log")
	f.StringVar(&tenant, "tenant", "", "`tenant` whose sessions the token is for; empty for no tenant")
	f.StringVar(&out, "out", "", "new `file` for the token")
	for _, flag := range []string{"name", "out"} {
		cobra.CheckErr(cmd.MarkFlagRequired(flag))
	}
	return cmd
}
