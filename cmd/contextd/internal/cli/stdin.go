package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// stdinBytes is how much of stdin is read at once.
const stdinBytes = 64 << 10

// stdin is an input whose Read returns when ctx ends. A plain read from a person or a pipe would block on,
// although the command was interrupted.
type stdin struct {
	ctx  context.Context //nolint:containedctx // Read has no parameter for it
	in   io.Reader
	rest bytes.Reader
	// reading receives the result of the pending read of in; nil if none is pending.
	reading chan stdinRead
	err     error
}

type stdinRead struct {
	content []byte
	err     error
}

// interruptible reads in until ctx ends. It reads nothing before the first Read.
func interruptible(ctx context.Context, in io.Reader) io.Reader { return &stdin{ctx: ctx, in: in} }

func (s *stdin) Read(p []byte) (int, error) {
	for s.rest.Len() == 0 && s.err == nil && len(p) > 0 {
		if err := s.ctx.Err(); err != nil {
			return 0, err
		}
		if s.reading == nil {
			s.reading = make(chan stdinRead, 1)
			go func(done chan<- stdinRead) {
				content := make([]byte, stdinBytes)
				n, err := s.in.Read(content)
				done <- stdinRead{content[:n], err}
			}(s.reading)
		}
		select {
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		case got := <-s.reading:
			s.reading, s.err = nil, got.err
			s.rest.Reset(got.content)
		}
	}
	if s.rest.Len() == 0 && len(p) > 0 {
		return 0, s.err
	}
	n, _ := s.rest.Read(p) // rest is not empty, or p is
	return n, nil
}

// openInput opens a file. A pipe that has a name keeps whoever opens it waiting for a writer, and
// then for what that writes; both end with ctx, as waiting for stdin does.
func openInput(ctx context.Context, path string) (*os.File, io.Reader, error) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().IsRegular() {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = &noInputError{err}
		}
		return f, f, err
	}
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		f, err := os.Open(path)
		done <- opened{f, err}
	}()
	select {
	case <-ctx.Done():
		return nil, nil, ctx.Err() // the file is open until the program ends, which is now
	case o := <-done:
		return o.file, interruptible(ctx, o.file), o.err
	}
}

// largestText is of a text that is sent in one request.
const largestText = 64 << 20

// readInput reads such a text.
func readInput(ctx context.Context, path string) ([]byte, error) {
	f, content, err := openInput(ctx, path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(content, largestText+1))
	if err == nil && len(text) > largestText {
		err = fmt.Errorf("%s has more than the %d bytes that one request may have", path, largestText)
	}
	return text, errors.Join(err, f.Close())
}
