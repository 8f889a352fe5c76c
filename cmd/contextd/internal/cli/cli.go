// Package cli is the program's command line: one file per subcommand. Commands
// write what was asked for to stdout and everything else to stderr.
package cli

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// Program is what the commands need of the process.
type Program struct {
	Version        string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	LookupEnv      func(string) (string, bool)
}

// OS is the program as the operating system started it.
func OS(version string) Program {
	return Program{Version: version, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, LookupEnv: os.LookupEnv}
}

// Run executes the command line and returns the exit code. It reports errors
// itself.
func (p Program) Run(ctx context.Context, args []string) int {
	root := p.newRoot()
	root.SetArgs(args)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	return p.report(err)
}

func (p Program) newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "contextd",
		Short:         "Assemble LLM contexts from an immutable event log",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.AddCommand(p.newServe())
	return root
}
