package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/contextd/contextd/internal/budget"
)

// shownModel is an entry of the registry.
type shownModel struct {
	Name      string  `json:"name"`
	Provider  string  `json:"provider"`
	Window    uint64  `json:"window"`
	Tokenizer string  `json:"tokenizer"`
	Margin    float64 `json:"margin"`

	Prices shownPrices `json:"prices"`

	ReturnReasoning bool `json:"return_reasoning"`
}

type shownPrices struct {
	Input           float64 `json:"input,omitempty"`
	CacheRead       float64 `json:"cache_read"`
	CacheWrite      float64 `json:"cache_write"`
	Output          float64 `json:"output,omitempty"`
	MinCachedTokens uint64  `json:"min_cached_tokens"`
}

func (p Program) newModels() *cobra.Command {
	var output outputFormat
	file := ""
	cmd := &cobra.Command{
		Use:   "models [NAME]",
		Short: "List the models that a budget may name, or show what a name means",
		Long: `List the models that a budget may name, with the configuration's own: the window, the
tokenizer, the share of the window that is kept free, and the prices: US dollars for a million
new tokens of the prompt, and relative to these what a token costs that the provider reads from
its cache, writes to it, or that the model writes, and from how many tokens on a prompt is cached.
REASONING says whether the model wants its reasoning back as text.
A name with * at its end is that of all models that begin with it. With NAME, show the entry that
a budget with this name would use; a model that is not known has that of "default".`,
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
			all = []budget.Model{found}
			noteName(cmd, registry, args[0])
		}
		var shown []shownModel
		for _, m := range all {
			shown = append(shown, shownModel{m.Name, m.Provider, m.Window, m.Tokenizer, m.Margin, shownPrices(m.Prices), m.ReturnReasoning})
		}
		noteLocal(cmd)
		if output.structured() {
			return writeLines(cmd.OutOrStdout(), output, shown)
		}
		t := newTable(cmd, "MODEL", "PROVIDER", "WINDOW", "TOKENIZER", "MARGIN", "INPUT $/M", "CACHE READ", "CACHE WRITE", "OUTPUT", "CACHED FROM", "REASONING")
		number := func(f float64) string { return fmt.Sprintf("%.4g", f) }
		known := func(f float64) string {
			if f == 0 {
				return dash("")
			}
			return number(f)
		}
		reasoning := map[bool]string{false: dash(""), true: "returned"}
		for _, m := range shown {
			p := m.Prices
			t.row(m.Name, dash(m.Provider), m.Window, m.Tokenizer, number(m.Margin),
				known(p.Input), number(p.CacheRead), number(p.CacheWrite), known(p.Output), p.MinCachedTokens, reasoning[m.ReturnReasoning])
		}
		return t.flush()
	}
	output.bind(cmd.Flags())
	bindQuiet(cmd.Flags())
	bindConfig(cmd, &file)
	cmd.ValidArgsFunction = (&client{program: p}).completeModel
	return cmd
}
