package cli

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// sendBytes is how much of a file goes into one message.
const sendBytes = 31 << 10

var gzipMagic = []byte{0x1f, 0x8b}

// transcriptInput is a file without its compression.
type transcriptInput struct {
	*bufio.Reader
	file io.Closer // nil for stdin
}

// Close closes the file.
func (t *transcriptInput) Close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}

// newTranscriptInput has a buffer of so many bytes, which can be looked at ahead.
func newTranscriptInput(size int) *transcriptInput {
	return &transcriptInput{Reader: bufio.NewReaderSize(nil, size)}
}

// openTranscript opens a file, or stdin for "-".
func openTranscript(cmd *cobra.Command, path string) (*transcriptInput, error) {
	in := newTranscriptInput(sendBytes)
	var err error
	if path == "-" {
		err = in.decompress(cmd.InOrStdin())
	} else {
		err = in.open(path)
	}
	return in, err
}

// open goes on with another file.
func (t *transcriptInput) open(path string) error {
	f, err := os.Open(path)
	if err != nil {
		t.file = nil
		return err
	}
	t.file = f
	if err := t.decompress(f); err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

func (t *transcriptInput) decompress(r io.Reader) error {
	t.Reset(r)
	if magic, err := t.Peek(len(gzipMagic)); err != nil || !bytes.Equal(magic, gzipMagic) {
		return nil //nolint:nilerr // whoever reads the file is told
	}
	plain, err := gzip.NewReader(bufio.NewReader(io.MultiReader(bytes.NewReader(t.buffered()), r)))
	if err != nil {
		return err
	}
	t.Reset(plain)
	return nil
}

// buffered copies what was read ahead.
func (t *transcriptInput) buffered() []byte {
	ahead, _ := t.Peek(t.Buffered()) // what is buffered is there
	return bytes.Clone(ahead)
}

// sendTranscript streams a file to the daemon as it is read.
func sendTranscript(ctx context.Context, api api, header *contextdv1.ImportHeader, in io.Reader) (*contextdv1.ImportTranscriptResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // what was begun and not ended must not be imported
	stream, err := api.transcripts.ImportTranscript(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Header{Header: header}})
	for err == nil {
		// gRPC keeps what it is given until it is sent: a new piece each time.
		piece := make([]byte, sendBytes)
		n, readErr := io.ReadFull(in, piece)
		if n > 0 {
			err = stream.Send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Data{Data: piece[:n]}})
		}
		if readErr != nil {
			if !errors.Is(readErr, io.EOF) && !errors.Is(readErr, io.ErrUnexpectedEOF) {
				return nil, readErr
			}
			break
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	// Where sending failed with io.EOF, this tells why.
	return stream.CloseAndRecv()
}
