package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// shownModel is an entry of the registry.
type shownModel struct {
	Name      string  `json:"name"`
	Provider  string  `json:"provider"`
	Window    uint64  `json:"window"`
	Tokenizer string  `json:"tokenizer"`
	Margin    float64 `json:"margin"`
}

func (p Program) newModels() *cobra.Command {
	var output outputFormat
	file := ""
	cmd := &cobra.Command{
		Use:   "models [NAME]",
		Short: "List the models that a budget may name, or show what a name means",
		Long: `List the models that a budget may name, with the configuration's own: the window, the
tokenizer and the share of the window that is kept free. A name with * at its end is that
of all models that begin with it. With NAME, show the entry that a budget with this name
would use; a model that is not known has that of "default".`,
		Example: `  contextd models
  contextd models claude-sonnet-4-5 --json`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		settings, err := p.loadConfig(file)
		if err != nil {
			return err
		}
		registry, err := settings.Registry()
		if err != nil {
			return err
		}
		all := registry.All()
		if len(args) == 1 {
			found, _ := registry.Lookup(args[0])
			all = all[:0]
			all = append(all, found)
		}
		var shown []shownModel
		for _, m := range all {
			shown = append(shown, shownModel(m))
		}
		if output.structured() {
			return writeLines(cmd.OutOrStdout(), output, shown)
		}
		t := newTable(cmd, "MODEL", "PROVIDER", "WINDOW", "TOKENIZER", "MARGIN")
		for _, m := range shown {
			t.row(m.Name, dash(m.Provider), m.Window, m.Tokenizer, fmt.Sprintf("%g", m.Margin))
		}
		return t.flush()
	}
	output.bind(cmd.Flags())
	bindQuiet(cmd.Flags())
	bindConfig(cmd, &file)
	cmd.ValidArgsFunction = (&client{program: p}).completeModel
	return cmd
}
