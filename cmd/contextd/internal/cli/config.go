package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
)

func (p Program) newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the settings that a daemon started here would have",
		Args:  onlySubcommands,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.newConfigShow())
	return cmd
}

// shownSetting is a setting's effective value, and where it was set.
type shownSetting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	From  string `json:"from"`
	Topic string `json:"topic"`
}

func (p Program) newConfigShow() *cobra.Command {
	c := config.Default()
	var output outputFormat
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show every setting as it would be in effect, and where it is from",
		Long: `Show every setting as "contextd serve" with the same flags, environment and file would
have it, and where it is from: a flag, a variable, a file, or the default. What may be a
secret is not shown. Those of a daemon that runs elsewhere, or was started otherwise, may differ.`,
		Example: `  contextd config show
  contextd config show --config /etc/contextd.yaml -o json | jq -r 'select(.from != "default")'`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().SortFlags = false
	output.bind(cmd.Flags())
	bindQuiet(cmd.Flags())
	c.Bind(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := c.Load(cmd.Flags(), p.LookupEnv); err != nil {
			return usageError{fmt.Errorf("configuration: %w", err)}
		}
		from, err := config.Sources(cmd.Flags(), p.LookupEnv)
		if err != nil {
			return usageError{fmt.Errorf("configuration: %w", err)}
		}
		var shown []shownSetting
		redacted := c.Redacted()
		redacted.Settings().VisitAll(func(f *pflag.Flag) {
			s := shownSetting{config.FileKey(f.Name), f.DefValue, "default", config.Topic(f)}
			if source, ok := from[f.Name]; ok {
				s.From = source
			}
			shown = append(shown, s)
		})
		noteLocal(cmd)
		if output.structured() {
			return writeLines(cmd.OutOrStdout(), output, shown)
		}
		t := newTable(cmd, "SETTING", "VALUE", "FROM")
		topic := ""
		for _, s := range shown {
			if s.Topic != topic {
				topic = s.Topic
				t.row("")
				t.row("# " + topic)
			}
			t.row(s.Key, dash(s.Value), s.From)
		}
		return t.flush()
	}
	return cmd
}

// loadConfig reads the settings of the environment and of a file; "" is the file that the environment names,
// if it names one.
func (p Program) loadConfig(file string) (config.Config, error) {
	settings := config.Default()
	flags := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	settings.Bind(flags)
	err := flags.Set(config.FileFlag, file)
	if err == nil {
		err = settings.Load(flags, p.LookupEnv)
	}
	if err != nil {
		return settings, usageError{fmt.Errorf("configuration: %w", err)}
	}
	return settings, nil
}

// bindConfig adds the flag for a configuration file to commands that need no daemon.
func bindConfig(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, config.FileFlag, "", "YAML `file` with settings; also "+config.EnvName(config.FileFlag))
}
