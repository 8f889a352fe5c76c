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
Flags have priority over the environment, and that over the file. Sockets that a service
manager has opened (LISTEN_FDS) are served in place of --listen and --unix-socket.

On SIGHUP the policies are read again, and which of them is the default and the shadow; calls that
have begun keep theirs. What is wrong with them is logged, and nothing changes.`,
		Example: `  contextd serve --data-dir /var/lib/contextd
  contextd serve --store memory --unix-socket /run/contextd/contextd.sock
  CONTEXTD_LOG_FORMAT=json contextd serve --config /etc/contextd.yaml`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().SortFlags = false
	c.Bind(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		loaded := make(chan error, 1)
		go func() { loaded <- c.Load(cmd.Flags(), p.LookupEnv) }()
		select {
		case err := <-loaded:
			if err != nil {
				return usageError{fmt.Errorf("configuration: %w", err)}
			}
		case <-cmd.Context().Done(): // a file may be a pipe that nobody writes to
			return cmd.Context().Err()
		}
		inherited, err := activate(&c)
		if err != nil {
			return usageError{fmt.Errorf("configuration: %w", err)}
		}
		// With a closed pipe as stderr the daemon must go on, and writes to a full one must not block it.
		signal.Ignore(syscall.SIGPIPE)
		log := daemon.NewLogWriter(p.Stderr)
		defer log.Close()
		logger := daemon.NewLogger(c, log)
		limitHeap(logger)
		// A reload that is asked for during another waits; several become one.
		reloads := make(chan os.Signal, 1)
		signal.Notify(reloads, syscall.SIGHUP)
		defer signal.Stop(reloads)
		d, err := daemon.Build(cmd.Context(), daemon.Options{
			Config: c, Inherited: inherited, Logger: logger, LookupEnv: p.LookupEnv, Version: p.Version,
			Reload:  func() (config.Config, error) { return config.Reload(cmd.Flags(), p.LookupEnv) },
			Reloads: reloads,
		})
		if err != nil {
			return err
		}
		if _, set := p.LookupEnv("GOGC"); !set {
			defer spareCollector()()
		}
		return d.Run(cmd.Context())
	}
	return cmd
}
