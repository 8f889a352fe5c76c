package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/contextd/contextd/internal/harness"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// importFlags are the flags of import.
type importFlags struct {
	session, harness string
	jobs             int
	verbose, follow  bool
}

func newImport(c *client) *cobra.Command {
	var flags importFlags
	cmd := &cobra.Command{
		Use:   "import PATH...",
		Short: "Import transcripts of other harnesses as sessions",
		Long: `Import transcripts of other harnesses as sessions: a file, - for stdin, or every
transcript in a folder and below. The harness is detected from the content; what is
not a transcript is counted and skipped. Files may be compressed by gzip. A conversation
of OpenHands that is a folder, with a file for each event, is one transcript.

An import may be repeated, and goes on where it was interrupted: events that the
session holds already are not appended again. --follow keeps importing what is
appended to a file until it is interrupted.

A file becomes the session of its name without its extension. A file of a folder becomes
the session of its path below the folder, without .jsonl; other bytes than letters,
digits and ._:- are written as @ and two hexadecimal digits.`,
		Example: `  contextd import ~/.claude/projects --session claude
  contextd import ~/.claude/projects/x/1234.jsonl --session my-session
  contextd import ~/.claude/projects/x/1234.jsonl --follow
  contextd import rollout.jsonl --harness codex --embedded ./data`,
		Args: cobra.MinimumNArgs(1),
	}
	// A mistyped path must not create a data directory.
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		if flags.follow || len(args) > 1 || args[0] == "-" {
			return nil
		}
		_, err := os.Stat(args[0])
		if errors.Is(err, fs.ErrNotExist) {
			err = &noInputError{err}
		}
		return err
	}
	cmd.RunE = c.runCreating(func(cmd *cobra.Command, api api, args []string) error {
		if flags.jobs < 1 {
			return usageError{errors.New("--jobs must be at least 1")}
		}
		if flags.follow {
			return c.follow(cmd, api, flags, args)
		}
		return c.importPaths(cmd, api, flags, args)
	})
	f := cmd.Flags()
	f.StringVar(&flags.session, "session", "", "`id` of the session of a file, or the prefix of the ids of several")
	f.StringVar(&flags.harness, "harness", "", "`name` of the harness that wrote it; detected from the content if not given")
	f.IntVar(&flags.jobs, "jobs", runtime.NumCPU(), "`files` that are imported at once")
	f.BoolVarP(&flags.verbose, "verbose", "v", false, "name the files that are not transcripts, and the warnings on those that are")
	f.BoolVar(&flags.follow, "follow", false, "import what is appended to the file until interrupted")
	complete(cmd, "harness", fixed(harness.Names()))
	return cmd
}

func (c *client) importPaths(cmd *cobra.Command, api api, flags importFlags, paths []string) error {
	if len(paths) == 1 && !isFolder(paths[0]) {
		return c.importFile(cmd, api, flags, paths[0])
	}
	if slices.Contains(paths, "-") {
		return usageError{errors.New("stdin cannot be imported with other files")}
	}
	return c.importTree(cmd, api, flags, paths)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// importFile imports a single named file.
func (c *client) importFile(cmd *cobra.Command, api api, flags importFlags, path string) error {
	header := &contextdv1.ImportHeader{SessionId: flags.session, Harness: flags.harness}
	if header.GetSessionId() == "" {
		header.SessionId = sessionOf(path)
	}
	in, err := openTranscript(cmd, path, newByteProgress(cmd))
	if err != nil {
		return err
	}
	resp, err := in.send(cmd.Context(), api, header)
	if err != nil {
		err = &inputError{err, path}
	}
	if err := errors.Join(err, in.Close()); err != nil {
		return err
	}
	if c.output.structured() {
		return c.output.write(cmd.OutOrStdout(), resp)
	}
	for _, w := range resp.GetWarnings() {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", oneLine(w, 0))
	}
	_, err = fmt.Fprintln(notes(cmd), importLine(resp))
	return err
}

// importLine summarizes an import in one line.
func importLine(resp *contextdv1.ImportTranscriptResponse) string {
	s := resp.GetSession()
	return fmt.Sprintf("%s: %s appended, %d in the session, %s, %s, %s skipped, %s renamed",
		s.GetSessionId(), counted(resp.GetEvents(), "event"), s.GetHeadSeq(), counted(s.GetTurns(), "turn"), counted(resp.GetCompactions(), "compaction"),
		counted(resp.GetDroppedDuplicates(), "duplicate"), counted(resp.GetRenamedIds(), "id"))
}
