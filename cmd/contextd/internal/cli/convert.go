package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/internal/harness"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// convertedSession is the id of the session while it is converted.
const convertedSession = "converted"

func (p Program) newConvert() *cobra.Command {
	c := &client{program: p}
	var flags exportFlags
	from := ""
	cmd := &cobra.Command{
		Use:   "convert IN OUT",
		Short: "Rewrite the transcript of a harness for another, without a daemon",
		Long: `Rewrite the transcript of a harness as the file that another resumes from, without a
daemon and without storing anything; - is stdin and stdout. What could not be read
unchanged, and what the harness cannot represent, is reported on stderr.

--as-compacted is that of "contextd export". What is read is bounded as by a daemon, by
CONTEXTD_MAX_IMPORT_BYTES and CONTEXTD_IMPORT_MEMORY.`,
		Example: `  contextd convert 1234.jsonl rollout.jsonl --to codex
  contextd convert long.jsonl short.jsonl --to claude --as-compacted --max-tokens 32k`,
		Args: cobra.ExactArgs(2),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := flags.resolve(); err != nil {
			return err
		}
		if err := harness.CheckWriter(flags.req.GetHarness()); err != nil {
			return formatError("--to", err)
		}
		if from != "" {
			if err := harness.CheckReader(from); err != nil {
				return formatError("--from", err)
			}
		}
		if sameFile(args[0], args[1]) {
			return usageError{errors.New("IN and OUT are the same file, which would be lost; give OUT another name")}
		}
		in, err := openTranscript(cmd, args[0], outputProgress(cmd, args[1]))
		if err != nil {
			return err
		}
		convert := c.convertPlain
		if flags.req.GetAsCompacted() {
			convert = c.convertCompacted
		}
		var report *contextdv1.ExportReport
		err = writeOutput(cmd, args[1], func(w io.Writer) (err error) {
			report, err = convert(cmd, in, from, &flags.req, w)
			return err
		})
		if err := errors.Join(err, in.Close()); err != nil {
			return err
		}
		return writeExport(cmd, c.output, report)
	}
	f := cmd.Flags()
	f.StringVar(&flags.req.Harness, "to", "", "`name` of the harness to write for: "+strings.Join(harness.Writers(), ", "))
	f.StringVar(&from, "from", "", "`name` of the harness that wrote it; detected from the content if not given")
	c.output.bind(f)
	bindQuiet(f)
	flags.bind(f)
	cobra.CheckErr(cmd.MarkFlagRequired("to"))
	complete(cmd, "to", fixed(harness.Writers()))
	complete(cmd, "from", fixed(harness.Names()))
	c.completions(cmd)
	return cmd
}

// convertPlain converts without a daemon: it reads and writes transcripts.
func (c *client) convertPlain(cmd *cobra.Command, in *transcriptInput, from string, req *contextdv1.ExportTranscriptRequest, w io.Writer) (*contextdv1.ExportReport, error) {
	settings, err := c.settings()
	if err != nil {
		return nil, err
	}
	account, err := harness.NewMemory(settings.Limits.ImportMemory).Open(cmd.Context())
	if err != nil {
		return nil, err
	}
	defer account.Close()
	read, err := harness.ReadWithin(&bounded{in: in, limit: settings.Limits.MaxImportBytes}, from, account)
	if err == nil {
		err = account.Retain(account.Retained()) // the writer gets copies, so nothing more is retained
	}
	if err != nil {
		where := "--from"
		if from == "" {
			where = cmd.Flags().Arg(0)
		}
		return nil, formatError(where, err)
	}
	wrote, err := harness.Write(w, read, req.GetHarness(), harness.WriteOptions{
		SessionID: req.GetHarnessSessionId(), WorkingDirectory: req.GetWorkingDirectory(),
	})
	if err != nil {
		return nil, formatError("--to", err)
	}
	out := &contextdv1.ExportReport{Entries: uint64(wrote.Entries), Compactions: uint64(wrote.Compactions), Warnings: in.warnings}
	for _, warning := range append(read.Warnings, wrote.Warnings...) {
		out.Warnings = append(out.Warnings, warning.String())
	}
	return out, nil
}

// bounded returns an error once more than limit bytes were read.
type bounded struct {
	in          io.Reader
	read, limit uint64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	if b.read += uint64(n); b.read > b.limit {
		return 0, usageError{fmt.Errorf("the transcript has more bytes than the %d of %sMAX_IMPORT_BYTES", b.limit, config.EnvPrefix)}
	}
	return n, err
}

func sameFile(a, b string) bool {
	in, err := os.Stat(a)
	if err != nil || !in.Mode().IsRegular() {
		return false
	}
	out, err := os.Stat(b)
	return err == nil && os.SameFile(in, out)
}

// formatError makes an error of a transcript's format one of the command line.
func formatError(where string, err error) error {
	var format *harness.FormatError
	var limit *harness.LimitError
	if errors.As(err, &format) || errors.As(err, &limit) {
		return usageError{fmt.Errorf("%s: %w", where, err)}
	}
	return err
}

// convertCompacted converts by a daemon within the process that stores in memory: a compaction needs a
// context, and contexts are assembled from a log.
func (c *client) convertCompacted(cmd *cobra.Command, in *transcriptInput, from string, req *contextdv1.ExportTranscriptRequest, w io.Writer) (report *contextdv1.ExportReport, err error) {
	conn, closeConn, err := c.embedStore(cmd.Context(), config.StoreMemory, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeConn()) }()
	api := newAPI(conn)
	read, err := in.send(cmd.Context(), api, &contextdv1.ImportHeader{SessionId: convertedSession, Harness: from})
	if err != nil {
		return nil, &inputError{err, cmd.Flags().Arg(0)}
	}
	c.noteBudget(cmd, api, req.GetBudget())
	req.SessionId = convertedSession
	report, err = receiveTranscript(cmd, api, req, w)
	if err != nil {
		return nil, err
	}
	report.Warnings = append(read.GetWarnings(), report.GetWarnings()...)
	return report, nil
}
