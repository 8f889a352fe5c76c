package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (p Program) newVersion() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  contextd version --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := map[string]string{
				"version": p.Version, "commit": commit(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(out)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "contextd %s (%s, %s, commit %s)\n", out["version"], out["go"], out["platform"], dash(out["commit"]))
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

// commit is the revision that the program was built from, if it is known.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
