package client

import (
	"context"
	"errors"
	"io"
	"reflect"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// uploadBytes is how much of a transcript one message has.
const uploadBytes = 256 << 10

// checkGiven refuses a context, a reader or a writer that is nil or is a nil pointer.
func checkGiven(ctx context.Context, ends ...any) error {
	if ctx == nil {
		return errNoContext
	}
	for _, end := range ends {
		if v := reflect.ValueOf(end); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return errors.New("what a transcript is read from or written to must not be nil")
		}
	}
	return nil
}

// Import reads a harness's transcript into a session. It is not repeated if it fails, since the reader
// cannot be read again. You can import the same transcript again: that appends nothing twice.
func (c *Client) Import(ctx context.Context, header *contextdv1.ImportHeader, transcript io.Reader) (*contextdv1.ImportTranscriptResponse, error) {
	if err := checkGiven(ctx, transcript); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.ImportTranscript(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Header{Header: header}})
	if err == nil {
		err = upload(transcript, func(data []byte) error {
			return stream.Send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Data{Data: data}})
		})
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	// After io.EOF the answer says why the daemon stopped reading.
	return stream.CloseAndRecv()
}

// upload sends what a reader has, in parts.
func upload(from io.Reader, send func([]byte) error) error {
	for {
		// A message that was sent may still be read.
		part := make([]byte, uploadBytes)
		var n, idle int
		var err error
		for n < len(part) && err == nil { // io.ReadFull would hide io.ErrUnexpectedEOF, by which gzip reports a cut file
			var more int
			more, err = from.Read(part[n:])
			n += more
			if idle++; more > 0 {
				idle = 0
			} else if idle == 100 && err == nil {
				err = io.ErrNoProgress
			}
		}
		if n > 0 {
			if err := send(part[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// Export writes a session as a transcript from which a harness can resume. It is not repeated if it
// fails, since a part of it may have been written.
func (c *Client) Export(ctx context.Context, req *contextdv1.ExportTranscriptRequest, to io.Writer) (*contextdv1.ExportReport, error) {
	if err := checkGiven(ctx, to); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.ExportTranscript(ctx, req)
	if err != nil {
		return nil, err
	}
	return download(stream.Recv, to)
}

// Convert converts a transcript of one harness into one of another, and stores nothing.
func (c *Client) Convert(ctx context.Context, header *contextdv1.ConvertHeader, from io.Reader, to io.Writer) (*contextdv1.ExportReport, error) {
	if err := checkGiven(ctx, from, to); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.ConvertTranscript(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&contextdv1.ConvertTranscriptRequest{Part: &contextdv1.ConvertTranscriptRequest_Header{Header: header}})
	if err == nil {
		err = upload(from, func(data []byte) error {
			return stream.Send(&contextdv1.ConvertTranscriptRequest{Part: &contextdv1.ConvertTranscriptRequest_Data{Data: data}})
		})
	}
	if err == nil {
		err = stream.CloseSend()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return download(stream.Recv, to)
}

// download writes the data of a stream, and returns the report at its end.
func download[T interface {
	GetData() []byte
	GetReport() *contextdv1.ExportReport
}](receive func() (T, error), to io.Writer) (report *contextdv1.ExportReport, err error) {
	for {
		part, err := receive()
		if errors.Is(err, io.EOF) {
			return report, nil
		}
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(part.GetData()); err != nil {
			return nil, err
		}
		if part.GetReport() != nil {
			report = part.GetReport()
		}
	}
}
