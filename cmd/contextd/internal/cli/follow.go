package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// followQuiet is how long a follower waits after an import, so that what is written in quick succession
// becomes one import.
const followQuiet = 200 * time.Millisecond

// follower imports a file again whenever it has grown.
type follower struct {
	path string
	// importBytes imports what the reader gives, from the beginning of the file.
	importBytes func(ctx context.Context, in io.Reader) error
	// changes signals that the file may have changed; one signal may cover many changes.
	changes <-chan struct{}
	now     func() time.Time
	after   func(time.Duration) <-chan time.Time
	// seen is the file's state at the last look, imported how many of its bytes are imported.
	seen     fileState
	imported int64
}

// fileState detects changes of a file.
type fileState struct {
	size int64
	at   time.Time
}

// follow imports a file until it is interrupted.
func (c *client) follow(cmd *cobra.Command, api api, flags importFlags, args []string) error {
	if len(args) != 1 || args[0] == "-" || isFolder(args[0]) {
		return usageError{errors.New("--follow takes one file")}
	}
	path := args[0]
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return usageError{fmt.Errorf("--follow takes a file that can be read again; %s is a device or a pipe", path)}
	}
	header := &contextdv1.ImportHeader{SessionId: flags.session, Harness: flags.harness}
	if header.GetSessionId() == "" {
		header.SessionId = sessionOf(path)
	}
	if err := checkFollowed(path); err != nil {
		return err
	}
	changes, stop, err := watchFile(path)
	if err != nil {
		return err
	}
	defer stop()
	warned := map[string]bool{}
	f := &follower{path: path, changes: changes, now: time.Now, after: time.After}
	f.importBytes = func(ctx context.Context, in io.Reader) error {
		resp, err := sendTranscript(ctx, api, header, in)
		if err != nil {
			return err
		}
		for _, w := range resp.GetWarnings() {
			if !warned[w] {
				warned[w] = true
				fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", oneLine(w, 0))
			}
		}
		if resp.GetEvents() == 0 {
			return nil
		}
		if c.output.structured() {
			return c.output.write(cmd.OutOrStdout(), resp)
		}
		_, err = fmt.Fprintln(notes(cmd), importLine(resp))
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "following %s\n", oneLine(path, 0))
	return f.run(cmd.Context())
}

// run imports until the context ends, which is no error.
func (f *follower) run(ctx context.Context) error {
	for {
		took, err := f.step(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // an interrupt is how a follower ends
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-f.changes:
		}
		// Each import reads the whole file, so wait as long as the last one took: half of the time at most is
		// spent on it.
		select {
		case <-ctx.Done():
			return nil
		case <-f.after(max(followQuiet, took)):
		}
	}
}

// step imports the file if it has more complete records than at the last import.
func (f *follower) step(ctx context.Context) (took time.Duration, err error) {
	file, err := os.Open(f.path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	state := fileState{info.Size(), info.ModTime()}
	if state == f.seen {
		return 0, nil
	}
	whole, err := wholeRecords(file, state.size)
	if err != nil {
		return 0, err
	}
	// Where all of the file is complete, it may have been replaced by another file of the same size.
	if whole == 0 || whole == f.imported && whole < state.size {
		f.seen = state
		return 0, nil
	}
	start := f.now()
	if err := f.importBytes(ctx, io.NewSectionReader(file, 0, whole)); err != nil {
		return 0, err
	}
	f.seen, f.imported = state, whole
	return f.now().Sub(start), nil
}
