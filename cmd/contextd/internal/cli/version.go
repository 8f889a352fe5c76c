package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/harness"
)

// versionReport describes the program.
type versionReport struct {
	Version  string   `json:"version"`
	Commit   string   `json:"commit"`
	Date     string   `json:"date"`
	Go       string   `json:"go"`
	Platform string   `json:"platform"`
	Features features `json:"features"`
}

// features are what the program supports of things that requests or settings name.
type features struct {
	Stores     []string `json:"stores"`
	Formats    []string `json:"formats"`
	Tokenizers []string `json:"tokenizers"`
	Reads      []string `json:"reads"`
	Writes     []string `json:"writes"`
}

func (p Program) newVersion() *cobra.Command {
	var output outputFormat
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, what it was built from, and what it can do",
		Example: `  contextd version
  contextd version --json | jq -r .commit`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r := versionReport{
				Version: p.Version, Commit: cmp.Or(p.Commit, buildSetting("vcs.revision")), Date: cmp.Or(p.Date, buildSetting("vcs.time")),
				Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
				Features: features{
					[]string{config.StoreMemory, config.StoreDisk, config.StorePostgres}, formatNames(), budget.Tokenizers(), harness.Names(), harness.Writers(),
				},
			}
			if output.structured() {
				return writeLines(cmd.OutOrStdout(), output, []versionReport{r})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "contextd %s (%s, %s, commit %s of %s)\n", r.Version, r.Go, r.Platform, dash(r.Commit), dash(r.Date))
			t := newTable(cmd)
			t.row("stores", strings.Join(r.Features.Stores, ", "))
			t.row("formats", strings.Join(r.Features.Formats, ", "))
			t.row("tokenizers", strings.Join(r.Features.Tokenizers, ", "))
			t.row("reads", strings.Join(r.Features.Reads, ", "))
			t.row("writes", strings.Join(r.Features.Writes, ", "))
			return t.flush()
		},
	}
	output.bind(cmd.Flags())
	return cmd
}

// buildSetting is a setting that the Go tool recorded in the program; empty if it did not.
func buildSetting(key string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
