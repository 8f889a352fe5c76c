package cli

import "github.com/spf13/cobra"

// sessionsFirst makes sessions the first arguments of a command. The hidden flag --session does the same, for
// scripts that use it.
func sessionsFirst(cmd *cobra.Command, valid cobra.PositionalArgs) {
	var named []string
	cmd.Flags().StringSliceVar(&named, "session", nil, "the session")
	cobra.CheckErr(cmd.Flags().MarkHidden("session"))
	all := func(args []string) []string { return append(named[:len(named):len(named)], args...) }
	run := cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error { return valid(cmd, all(args)) }
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd, all(args)) }
}
