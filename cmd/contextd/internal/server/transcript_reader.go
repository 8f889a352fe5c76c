package server

import (
	"context"
	"errors"
	"io"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/internal/fair"
	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/scrub"
)

// openTranscript receives the header of a file, and returns a reader of its bytes.
func openTranscript[R interface{ GetData() []byte }, H any](ctx context.Context, turns *fair.Turns, receive func() (R, error), header func(R) *H, limit uint64) (*H, *transcriptReader, error) {
	first, err := receive()
	if errors.Is(err, io.EOF) || err == nil && header(first) == nil {
		return nil, nil, &eventlog.InvalidError{Field: "header", Reason: "must be the first message"}
	}
	if err != nil {
		return nil, nil, err
	}
	return header(first), &transcriptReader{limit: limit, turn: fair.Of(turns), ctx: ctx, receive: func() ([]byte, bool, error) {
		req, err := receive()
		return req.GetData(), header(req) != nil, err
	}}, nil
}

// transcriptReader reads a file's bytes out of a stream.
type transcriptReader struct {
	// receive returns the next bytes, or header true if a header arrived instead.
	receive func() (data []byte, header bool, err error)
	rest    []byte
	read    uint64
	limit   uint64
	err     error // other than io.EOF
	// scrub replaces credentials in the file; nil replaces nothing.
	scrub *scrub.Scrubber
	// turn is the processor's; it is taken while the file is parsed, but not while more of it is awaited.
	turn fair.Turn
	ctx  context.Context
}

func (r *transcriptReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.turn.End()
		data, header, err := r.receive()
		if begun := r.turn.Begin(r.ctx); begun != nil && (err == nil || errors.Is(err, io.EOF)) {
			err = begun
		}
		if errors.Is(err, io.EOF) {
			return 0, io.EOF
		}
		if err == nil && header {
			err = &eventlog.InvalidError{Field: "header", Reason: "must come once, before the data"}
		}
		if r.read += uint64(len(data)); err == nil && r.read > r.limit {
			err = &apierr.LimitError{Field: "data", Setting: "max_import_bytes", Limit: r.limit, Actual: r.read, Unit: "bytes"}
		}
		if err != nil {
			r.err = err
			return 0, err
		}
		r.rest = data
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// transcript reads the whole file as one of the named harness; if name is empty, it is detected from the
// content. field is the request's field with the name, for errors.
func (r *transcriptReader) transcript(field, name string, account *harness.Account) (harness.Transcript, error) {
	if name != "" {
		if err := refusedHarness(field, harness.CheckReader(name)); err != nil {
			return harness.Transcript{}, err
		}
	}
	defer r.turn.End()
	read, err := harness.ReadWithin(r.scrub.NewReader(r), name, account)
	if r.err != nil {
		// The harness's reader may have wrapped this error, or read the part before it as a complete file.
		return read, r.err
	}
	if err != nil {
		return read, err
	}
	return read, r.drain()
}

// drain reads the rest of the file, which the harness's reader did not read.
func (r *transcriptReader) drain() error {
	_, err := io.Copy(io.Discard, r)
	return err
}
