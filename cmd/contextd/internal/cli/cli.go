// Package cli is the program's command line: one file per subcommand. Commands
// write what was asked for to stdout and everything else to stderr.
package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/contextd/contextd/cmd/contextd/internal/demo"
)

// Program is what the commands use of the process.
type Program struct {
	Build
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	LookupEnv      func(string) (string, bool)
}

// Build identifies the program's sources. Where the commit and its date are empty, the ones that the Go tool
// recorded are used.
type Build struct{ Version, Commit, Date string }

// OS is the program as the operating system started it.
func OS(build Build) Program {
	return Program{Build: build, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, LookupEnv: os.LookupEnv}
}

// Run executes the command line and returns the exit code. It writes errors to Stderr itself.
func (p Program) Run(ctx context.Context, args []string) int {
	started := false
	root := p.newRoot()
	var out *pager
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		if err := errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups()); err != nil {
			return err
		}
		started = true
		if isQuiet(cmd) {
			cmd.SetErr(io.Discard)
		}
		if out, err = p.page(cmd); out != nil {
			cmd.SetOut(out)
		}
		return err
	}
	root.SetArgs(args)
	root.SetIn(interruptible(ctx, p.Stdin))
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	err = out.end(err)
	if err == nil {
		return ExitOK
	}
	if !started {
		// Errors before a command runs come from the command line.
		err = usageError{err}
	}
	return p.report(cmd, err)
}

func (p Program) newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "contextd",
		Short: "Assemble LLM contexts from an immutable event log",
		Long: `contextd keeps the log of what happened in an agent's session and assembles
from it the context of the next model call, within a token budget.

Exit codes: 0 success, 1 failure, 2 wrong usage or invalid input, 3 not found,
4 over budget or another precondition, 5 daemon or store not available, 6 stopped
although not everything had ended, 7 ended at once by a second signal.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       p.Version,
		Args:          onlySubcommands,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(wrongFlag)
	root.SetUsageFunc(usage)
	add := func(group string, commands ...*cobra.Command) {
		id := strings.ToLower(group)
		root.AddGroup(&cobra.Group{ID: id, Title: group + ":"})
		for _, cmd := range commands {
			cmd.GroupID = id
			root.AddCommand(cmd)
		}
	}
	ofClient := func(commands ...func(*client) *cobra.Command) (made []*cobra.Command) {
		for _, newCommand := range commands {
			c := &client{program: p}
			cmd := newCommand(c)
			c.bind(cmd)
			c.completions(cmd)
			made = append(made, cmd)
		}
		return made
	}
	const daemonOrDirectory = " (of a running daemon, or --embedded DIR)"
	add("The daemon", p.newServe(), p.newConfig(), p.newModels())
	add("Sessions and contexts"+daemonOrDirectory, ofClient(newSessions, newAppend, newImport, newExport, newAssemble, newCompact, newRecord, newTokens, newPolicy, newMCP)...)
	add("What models saw, and why"+daemonOrDirectory, ofClient(newLog, newShow, newDiff, newExplain, newProjections, newCalls, newSummaries, newResolve, newWatch, newInspect)...)
	add("Care of the sessions"+daemonOrDirectory, ofClient(newHealth, newVerify, newGC, newBackup)...)
	add("To try, measure and convert (no daemon)", demo.NewCommand(), p.newEval(), p.newConvert())
	add("Stores and keys (no daemon)", p.newCopy(), p.newMigrate(), p.newRestore(), p.newRepair(), p.newKeygen(), p.newToken())
	add("The program", p.newVersion())
	root.SetHelpCommandGroupID("the program")
	root.SetCompletionCommandGroupID("the program")
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, topic []string) error {
				found, rest, err := root.Find(topic)
				return cmp.Or(err, onlySubcommands(found, rest))
			}
		case "completion":
			cmd.Args, cmd.RunE = onlySubcommands, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	return root
}
