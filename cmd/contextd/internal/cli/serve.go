package cli

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/daemon"
)

func (p Program) newServe() *cobra.Command {
	c := config.Default()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon",
		Long: `Run the daemon until it is interrupted.

Every flag can also be set by an environment variable, --data-dir by
CONTEXTD_DATA_DIR and so on, and in the YAML file of --config, as data_dir.
Flags go before the environment, and that before the file.

On SIGHUP the policies are read again, and which of them is the default; calls that
have begun keep theirs. What is wrong with them is logged, and nothing changes.`,
		Example: `  contextd serve --data-dir /var/lib/contextd
  contextd serve --store memory --unix-socket /run/contextd/contextd.sock --listen ""
  CONTEXTD_LOG_FORMAT=json contextd serve --config /etc/contextd.yaml`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().SortFlags = false
	c.Bind(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := c.Load(cmd.Flags(), p.LookupEnv); err != nil {
			return usageError{fmt.Errorf("configuration: %w", err)}
		}
		// One that comes while another is acted upon waits; more are as one.
		reloads := make(chan os.Signal, 1)
		signal.Notify(reloads, syscall.SIGHUP)
		defer signal.Stop(reloads)
		d, err := daemon.Build(cmd.Context(), daemon.Options{
			Config: c, Logger: daemon.NewLogger(c, p.Stderr), LookupEnv: p.LookupEnv, Version: p.Version,
			Reload:  func() (config.Config, error) { return config.Reload(cmd.Flags(), p.LookupEnv) },
			Reloads: reloads,
		})
		if err != nil {
			return err
		}
		return d.Run(cmd.Context())
	}
	return cmd
}
