package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"

	"github.com/contextd/contextd/internal/harness"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// detectBytes is how many bytes of a file are read to detect its harness.
const detectBytes = 1 << 20

// importedFile is the result of one file.
type importedFile struct {
	plannedFile
	// resp is nil if the file is not a transcript, or failed.
	resp *contextdv1.ImportTranscriptResponse
	err  error
}

// importTree imports every transcript in paths. Other files are imported even if one fails.
func (c *client) importTree(cmd *cobra.Command, api api, flags importFlags, paths []string) error {
	files := planImport(paths, flags.session)
	report := &importReport{client: c, cmd: cmd, verbose: flags.verbose, progress: newProgress(cmd)}
	report.progress.expect(len(files))
	var err error
	for _, wave := range waves(files) {
		if err == nil {
			err = importAll(cmd.Context(), api, flags, wave, report)
		}
	}
	report.progress.close()
	if cause := cmd.Context().Err(); cause != nil {
		err = fmt.Errorf("%w: import again to go on", cause)
	}
	if err = errors.Join(err, report.end()); err == nil && report.imported == 0 {
		return &noTranscriptError{paths} // a mistyped folder must not succeed
	}
	return err
}

// waves splits files in two: transcripts of subagents, by the folders where harnesses put them, come second,
// since the session that started a subagent must exist by then.
func waves(files []plannedFile) [2][]plannedFile {
	var out [2][]plannedFile
	for _, f := range files {
		wave := 0
		if strings.Contains(f.session, "/subagents/") {
			wave = 1
		}
		out[wave] = append(out[wave], f)
	}
	return out
}

// importAll imports several files at once.
func importAll(ctx context.Context, api api, flags importFlags, files []plannedFile, report *importReport) error {
	parent := ctx
	group, ctx := errgroup.WithContext(ctx)
	todo := make(chan plannedFile)
	group.Go(func() error {
		defer close(todo)
		for _, f := range files {
			select {
			case todo <- f:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	var mu sync.Mutex
	var crowded []plannedFile // refused for the load of files imported at the same time
	for range min(flags.jobs, len(files)) {
		group.Go(func() error {
			in := newTranscriptInput(detectBytes)
			for f := range todo {
				done := importedFile{plannedFile: f}
				report.at(f.path)
				done.resp, done.err = importOne(ctx, api, in, flags.harness, f)
				if flags.jobs > 1 && mayRetry(done.err) {
					mu.Lock()
					crowded = append(crowded, f)
					mu.Unlock()
					continue
				}
				if endsImport(done.err) {
					return done.err
				}
				if err := report.add(done); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil || len(crowded) == 0 {
		return err
	}
	flags.jobs = 1
	return importAll(parent, api, flags, crowded, report)
}

// mayRetry reports whether a file was refused for lack of a shared resource that may be free later.
func mayRetry(err error) bool {
	st, ok := statusOf(err)
	return ok && st.Code() == codes.ResourceExhausted && slices.ContainsFunc(st.Details(), func(detail any) bool {
		_, retry := detail.(*errdetails.RetryInfo)
		return retry
	})
}

// importOne imports a file if it is a transcript; resp is nil if it is not.
func importOne(ctx context.Context, api api, in *transcriptInput, name string, f plannedFile) (resp *contextdv1.ImportTranscriptResponse, err error) {
	if f.err != nil && f.named {
		return nil, f.err
	}
	if err := in.openFile(ctx, f.path); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	name, is, err := in.harnessOf(f, name)
	if !is || err != nil {
		return nil, err
	}
	if f.err != nil {
		return nil, f.err
	}
	return in.send(ctx, api, &contextdv1.ImportHeader{SessionId: f.session, Harness: name})
}

// harnessOf is the harness that wrote a file: the named one, or the detected one; empty if none is detected.
// is reports whether to read the file: always if the user named it, else only if it is a transcript.
func (t *transcriptInput) harnessOf(f plannedFile, name string) (_ string, is bool, err error) {
	if f.named && name != "" {
		return name, true, nil
	}
	prefix, err := t.Peek(detectBytes)
	var none *harness.FormatError
	if errors.As(err, &none) && !f.named {
		return "", false, nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", false, err
	}
	found, ok := harness.Detect(prefix)
	if !ok {
		return "", f.named, nil
	}
	return cmp.Or(name, found), true, nil
}

// endsImport reports whether every other file would fail too.
func endsImport(err error) bool {
	st, ok := statusOf(err)
	if !ok {
		return errors.Is(err, context.Canceled)
	}
	switch st.Code() {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded, codes.Unimplemented:
		return true
	default:
		return false
	}
}

// importReport writes the result of each file, and counts them.
type importReport struct {
	client   *client
	cmd      *cobra.Command
	verbose  bool
	progress *progress

	mu       sync.Mutex
	imported int
	failed   int
	others   int
	events   uint64
	compact  uint64
	warnings int
}

func (r *importReport) at(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress.at(path)
}

// fileLine is the result of a file for --json.
type fileLine struct {
	Path      string   `json:"path"`
	SessionID string   `json:"session_id,omitempty"`
	Events    uint32   `json:"events"`
	HeadSeq   uint64   `json:"head_seq,omitempty"`
	Compacted uint32   `json:"compactions"`
	Dropped   uint32   `json:"dropped_duplicates"`
	Renamed   uint32   `json:"renamed_ids"`
	Warnings  []string `json:"warnings,omitempty"`
	Error     string   `json:"error,omitempty"`
}

func (r *importReport) add(f importedFile) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress.close() // clear the bar, since lines follow
	defer r.progress.done()
	out, remarks := r.cmd.OutOrStdout(), r.cmd.ErrOrStderr()
	line := fileLine{Path: f.path, SessionID: f.session}
	switch {
	case f.err != nil:
		r.failed++
		line.Error = f.err.Error()
		if st, ok := statusOf(f.err); ok {
			line.Error = statusText(st)
		}
		fmt.Fprintf(remarks, "failed: %s: %s\n", oneLine(f.path, 0), line.Error)
	case f.resp == nil:
		r.others++
		if r.verbose {
			fmt.Fprintf(remarks, "no transcript: %s\n", oneLine(f.path, 0))
		}
		return nil
	default:
		r.imported++
		r.events += uint64(f.resp.GetEvents())
		r.compact += uint64(f.resp.GetCompactions())
		r.warnings += len(f.resp.GetWarnings())
		line.Events, line.HeadSeq, line.Compacted = f.resp.GetEvents(), f.resp.GetSession().GetHeadSeq(), f.resp.GetCompactions()
		line.Dropped, line.Renamed, line.Warnings = f.resp.GetDroppedDuplicates(), f.resp.GetRenamedIds(), f.resp.GetWarnings()
		for _, w := range f.resp.GetWarnings() {
			if r.verbose {
				fmt.Fprintf(remarks, "warning: %s: %s\n", oneLine(f.path, 0), oneLine(w, 0))
			}
		}
	}
	if r.client.output.structured() {
		return writeLines(out, r.client.output, []fileLine{line})
	}
	if f.resp == nil {
		return nil
	}
	_, err := fmt.Fprintln(notes(r.cmd), importLine(f.resp))
	return err
}

// end writes the totals, and returns an error if a file failed.
func (r *importReport) end() error {
	out := notes(r.cmd)
	if r.client.output.structured() {
		out = r.cmd.ErrOrStderr() // stdout has one value per file
	}
	_, err := fmt.Fprintf(out, "%s imported: %s appended, %d of them compactions, %s; %s; %d failed\n",
		counted(r.imported, "transcript"), counted(r.events, "event"), r.compact, counted(r.warnings, "warning"), counted(r.others, "other file"), r.failed)
	if err == nil && r.failed > 0 {
		err = fmt.Errorf("%s could not be imported", counted(r.failed, "file"))
	}
	return err
}
