package cli

import (
	"cmp"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// terminalOf is the terminal on which output to w appears; nil if there is none.
func terminalOf(w io.Writer) *os.File {
	if p, ok := w.(*pager); ok {
		return p.terminal
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// pager is a program such as less that shows its input page by page.
type pager struct {
	io.WriteCloser
	terminal *os.File
	program  *exec.Cmd
}

// paged are the commands that use the pager.
var paged = map[string]bool{
	"contextd log": true, "contextd show": true, "contextd diff": true, "contextd explain": true,
	"contextd sessions list": true, "contextd projections list": true, "contextd summaries": true,
	"contextd models": true, "contextd config show": true,
}

// page starts $PAGER where it is set and a command with long output writes to a terminal. Otherwise it
// returns nil.
func (p Program) page(cmd *cobra.Command) (*pager, error) {
	command, _ := p.LookupEnv("PAGER")
	terminal := terminalOf(cmd.OutOrStdout())
	if command == "" || terminal == nil || !paged[cmd.CommandPath()] {
		return nil, nil
	}
	if follow := cmd.Flag("follow"); follow != nil && follow.Changed {
		return nil, nil
	}
	less, _ := p.LookupEnv("LESS")
	out := &pager{terminal: terminal, program: exec.Command("sh", "-c", command)} //nolint:noctx // it ends when the user quits it
	out.program.Stdin, out.program.Stdout, out.program.Stderr = nil, terminal, p.Stderr
	out.program.Env = append(os.Environ(), "LESS="+cmp.Or(less, "FRX")) // keep a short page on the screen, with its colours
	var err error
	if out.WriteCloser, err = out.program.StdinPipe(); err != nil {
		return nil, err
	}
	return out, out.program.Start()
}

// end waits until the user quits the pager, and returns the command's error. Quitting before the output ended
// is no error.
func (p *pager) end(err error) error {
	if p == nil {
		return err
	}
	if errors.Is(err, syscall.EPIPE) {
		err = nil
	}
	return errors.Join(err, p.Close(), p.program.Wait())
}

const quietFlag = "quiet"

func bindQuiet(f *pflag.FlagSet) {
	f.BoolP(quietFlag, "q", false, "write only what was asked for, and errors: no notes, no progress")
}

// isQuiet reports whether --quiet is set.
func isQuiet(cmd *cobra.Command) bool {
	q, err := cmd.Flags().GetBool(quietFlag)
	return err == nil && q
}

// notes is where a command reports what it did.
func notes(cmd *cobra.Command) io.Writer {
	if isQuiet(cmd) {
		return io.Discard
	}
	return cmd.OutOrStdout()
}
