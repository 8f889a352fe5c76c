package cli

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/disklog/durable"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// exportFlags are the flags for what a transcript is written from.
type exportFlags struct {
	req      contextdv1.ExportTranscriptRequest
	settings requestSettings
}

func (e *exportFlags) bind(f *pflag.FlagSet) {
	f.BoolVar(&e.req.AsCompacted, "as-compacted", false, "end with a compaction to what fits the budget")
	f.StringVar(&e.req.HarnessSessionId, "session-id", "", "`id` of the session in the file; the one it had, or one derived from its events, if not given")
	f.StringVar(&e.req.WorkingDirectory, "cwd", "", "working `directory` where the session does not know its own; / if not given")
	e.settings.bind(f)
}

// resolve completes the request from the flags.
func (e *exportFlags) resolve() (err error) {
	if e.req.Budget, e.req.Policy, err = e.settings.resolve(); err != nil {
		return err
	}
	if !e.req.GetAsCompacted() && (e.req.GetBudget() != nil || e.req.GetPolicy() != nil) {
		return usageError{errors.New("a budget and a policy are for --as-compacted alone")}
	}
	return nil
}

func newExport(c *client) *cobra.Command {
	var flags exportFlags
	output, format, projection := "", "", ""
	cmd := &cobra.Command{
		Use:   "export SESSION",
		Short: "Write a session as the transcript of a harness, or to read",
		Long: `With --harness, write a session, with those of its subagents that were imported with it, as the file
that a harness resumes from. What the harness cannot represent is reported on stderr.

--as-compacted appends a compaction: the summary that contextd writes of what does not
fit the budget, and the messages that stay. The harness resumes from these; the file
still has everything.

With --format markdown or html, write it to read: the whole log or, with --projection, what
the model saw in one call and what was done to it. What was said cannot become markup in
either; the page is one file that loads nothing and runs no script.`,
		Example: `  contextd export my-session --harness claude -o 1234.jsonl
  contextd export my-session --harness codex --as-compacted --max-tokens 32k > rollout.jsonl
  contextd export my-session --format html -o my-session.html
  contextd export my-session --format markdown --projection newest`,
		Args: cobra.ExactArgs(1),
	}
	cmd.PreRunE = func(*cobra.Command, []string) error { return checkReadingFormat(format) }
	cmd.RunE = c.runReading(func(cmd *cobra.Command, api api, args []string) error {
		if format != "" {
			return c.exportToRead(cmd, api, args[0], format, projection, output)
		}
		if projection != "" {
			return usageError{errors.New("--projection is for --format alone")}
		}
		if err := flags.resolve(); err != nil {
			return err
		}
		c.noteBudget(cmd, api, flags.req.GetBudget())
		flags.req.SessionId = args[0]
		bar := outputProgress(cmd, output)
		bar.at(args[0])
		var report *contextdv1.ExportReport
		err := writeOutput(cmd, output, func(w io.Writer) (err error) {
			report, err = receiveTranscript(cmd, api, &flags.req, io.MultiWriter(w, bar))
			return err
		})
		bar.close()
		if err != nil {
			return err
		}
		return writeExport(cmd, c.output, report)
	})
	f := cmd.Flags()
	f.StringVar(&flags.req.Harness, "harness", "", "`name` of the harness: "+strings.Join(harness.Writers(), ", "))
	f.StringVarP(&output, "output", "o", "-", "`file` to write, whole or not at all; - for stdout")
	flags.bind(f)
	f.StringVar(&format, "format", "", "write it to read, in this `format`: markdown or html")
	f.StringVar(&projection, "projection", "", "the recorded `projection` of one call; newest for the newest")
	cmd.MarkFlagsOneRequired("harness", "format")
	for _, flag := range []string{"harness", "as-compacted", "session-id", "cwd"} {
		cmd.MarkFlagsMutuallyExclusive("format", flag)
	}
	complete(cmd, "harness", fixed(harness.Writers()))
	complete(cmd, "format", fixed(readingFormats()))
	return cmd
}

func checkReadingFormat(format string) error {
	if format != "" && !slices.Contains(readingFormats(), format) {
		wrong := fmt.Errorf("--format: %q is none of %s", format, strings.Join(readingFormats(), ", "))
		if meant := config.Nearest(format, append(harness.Writers(), readingFormats()...)); slices.Contains(harness.Writers(), meant) {
			return usageError{&mistypedError{wrong, "--harness " + meant}}
		}
		return usageError{mistyped(wrong, format, readingFormats())}
	}
	return nil
}

// exportToRead writes a session, or one of its model calls, in a format for people.
func (c *client) exportToRead(cmd *cobra.Command, api api, session, format, projection, output string) error {
	return writeOutput(cmd, output, func(w io.Writer) error {
		buffered := bufio.NewWriter(w)
		out := newReader(format, buffered)
		var err error
		switch projection {
		case "":
			err = exportSession(cmd, api, session, out)
		case newestProjection:
			err = exportCall(cmd, api, session, "", out)
		default:
			err = exportCall(cmd, api, session, projection, out)
		}
		if flushErr := buffered.Flush(); err == nil {
			err = flushErr
		}
		return err
	})
}

// newestProjection selects the newest recorded projection.
const newestProjection = "newest"

// receiveTranscript writes the file that the daemon sends.
func receiveTranscript(cmd *cobra.Command, api api, req *contextdv1.ExportTranscriptRequest, w io.Writer) (*contextdv1.ExportReport, error) {
	stream, err := api.transcripts.ExportTranscript(cmd.Context(), req)
	if err != nil {
		return nil, err
	}
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the daemon sent no report: the file is not whole")
		}
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(resp.GetData()); err != nil {
			return nil, err
		}
		if resp.GetReport() != nil {
			return resp.GetReport(), nil
		}
	}
}

// outputProgress shows progress while a command writes a file or, for "-", stdout. Where stdout is a terminal
// it shows none, since the bar would mix with the output.
func outputProgress(cmd *cobra.Command, path string) *progress {
	if path == "-" && terminalOf(cmd.OutOrStdout()) != nil {
		return &progress{}
	}
	return newByteProgress(cmd)
}

// writeOutput writes a file, or stdout for "-". A file appears whole or not at all.
func writeOutput(cmd *cobra.Command, path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(inertOn(cmd.OutOrStdout()))
	}
	// Devices and pipes cannot be replaced.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	temporary := filepath.Join(filepath.Dir(path), ".contextd-"+rand.Text())
	err := durable.Whole(disklog.PrivateFS(), temporary, path, write)
	if at, ok := errors.AsType[*fs.PathError](err); ok && at.Path == temporary {
		at.Path = path // the name that the user gave
	}
	return err
}

// writeExport writes what was exported and what was lost, to stderr.
func writeExport(cmd *cobra.Command, o outputFormat, r *contextdv1.ExportReport) error {
	out := cmd.ErrOrStderr() // stdout may be the transcript
	if o.structured() {
		return o.write(out, r)
	}
	for _, w := range r.GetWarnings() {
		fmt.Fprintf(out, "warning: %s\n", oneLine(w, 0))
	}
	_, err := fmt.Fprintf(out, "entries written: %d, of them compactions: %d\n", r.GetEntries(), r.GetCompactions())
	return err
}
