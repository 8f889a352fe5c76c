package cli

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/contextd/contextd/internal/harness"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// sendBytes is how many bytes of a file are sent in one message.
const sendBytes = 31 << 10

var gzipMagic = []byte{0x1f, 0x8b}

// transcriptInput reads a transcript file decompressed, or the rows of a database as lines.
type transcriptInput struct {
	*bufio.Reader
	open []io.Closer // closed from last to first
	// warnings are problems with the file itself, such as a database that was in use.
	warnings []string
	progress *progress
}

// Close closes the file.
func (t *transcriptInput) Close() error {
	var err error
	for _, c := range slices.Backward(t.open) {
		err = errors.Join(err, c.Close())
	}
	t.progress.close()
	t.open, t.warnings = nil, nil
	return err
}

// newTranscriptInput has a buffer of so many bytes, which is how far Peek can look ahead.
func newTranscriptInput(size int) *transcriptInput {
	return &transcriptInput{Reader: bufio.NewReaderSize(nil, size), progress: &progress{}}
}

// openTranscript opens a file, or stdin for "-". The bar shows how many bytes of a file were read.
func openTranscript(cmd *cobra.Command, path string, bar *progress) (*transcriptInput, error) {
	in := newTranscriptInput(sendBytes)
	var err error
	if path == "-" {
		err = in.decompress(cmd.InOrStdin())
	} else {
		in.progress = bar
		bar.at(filepath.Base(path))
		err = in.openFile(cmd.Context(), path)
	}
	return in, err
}

// openFile starts reading a file, a database, or a folder that is one transcript.
func (t *transcriptInput) openFile(ctx context.Context, path string) error {
	if isFolder(path) {
		t.folder(path)
		return nil
	}
	f, content, err := openInput(ctx, path)
	if err != nil {
		return err
	}
	t.open = append(t.open, f)
	if err = t.decompress(io.TeeReader(content, t.progress)); err == nil {
		err = t.database(ctx, f)
	}
	if err != nil {
		return errors.Join(err, t.Close())
	}
	return nil
}

// database starts reading the rows if the file is a database.
func (t *transcriptInput) database(ctx context.Context, f *os.File) error {
	before, err := f.Stat()
	if err != nil {
		return err
	}
	db := harness.DatabaseOf(f)
	if db == nil {
		t.progress.expect(int(before.Size()))
		return nil
	}
	var log io.ReaderAt
	if wal, err := os.Open(f.Name() + "-wal"); err == nil {
		t.open, log = append(t.open, wal), wal
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if journal, err := os.Stat(f.Name() + "-journal"); err == nil && journal.Size() > 0 {
		t.warnings = append(t.warnings, "a change of the database is under way or was broken off: close what writes it, and import it again")
	}
	rows := db.Open(ctx, f, before.Size(), log, func(warning string) {
		t.warnings = append(t.warnings, warning)
	})
	t.open = append(t.open, rows)
	t.Reset(io.TeeReader(rows, t.progress))
	return nil
}

func (t *transcriptInput) decompress(r io.Reader) error {
	t.Reset(r)
	if magic, err := t.Peek(len(gzipMagic)); err != nil || !bytes.Equal(magic, gzipMagic) {
		return nil //nolint:nilerr // the error comes again when the file is read
	}
	plain, err := gzip.NewReader(bufio.NewReader(io.MultiReader(bytes.NewReader(t.buffered()), r)))
	if err != nil {
		return compressedError(err)
	}
	t.Reset(compressed{plain})
	return nil
}

// compressed reads a gzip file, with errors that say so.
type compressed struct{ *gzip.Reader }

// Read implements io.Reader.
func (c compressed) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = compressedError(err)
	}
	return n, err
}

func compressedError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errors.New("the file is compressed by gzip, and cut off")
	}
	return fmt.Errorf("the file is compressed by gzip, and damaged: %w", err)
}

// buffered returns a copy of the bytes that were read ahead.
func (t *transcriptInput) buffered() []byte {
	ahead, _ := t.Peek(t.Buffered()) // Peek of buffered bytes does not fail
	return bytes.Clone(ahead)
}

// send streams the file, and puts its own warnings before the daemon's.
func (t *transcriptInput) send(ctx context.Context, api api, header *contextdv1.ImportHeader) (*contextdv1.ImportTranscriptResponse, error) {
	resp, err := sendTranscript(ctx, api, header, t)
	if err != nil {
		return nil, formatError("PATH", err)
	}
	resp.Warnings = append(slices.Clone(t.warnings), resp.GetWarnings()...)
	return resp, nil
}

// fill reads until the piece is full or an error comes, and returns the reader's own error. io.ReadFull would
// turn io.EOF within a piece into io.ErrUnexpectedEOF, which here means that a compressed file is truncated.
func fill(in io.Reader, piece []byte) (n int, err error) {
	for n < len(piece) && err == nil {
		var more int
		more, err = in.Read(piece[n:])
		n += more
	}
	return n, err
}

// sendTranscript streams a file to the daemon as it is read.
func sendTranscript(ctx context.Context, api api, header *contextdv1.ImportHeader, in io.Reader) (*contextdv1.ImportTranscriptResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // a stream that is cancelled is not imported
	stream, err := api.transcripts.ImportTranscript(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Header{Header: header}})
	for err == nil {
		// gRPC may keep the slice until it is sent, so each piece is new.
		piece := make([]byte, sendBytes)
		n, readErr := fill(in, piece)
		if n > 0 {
			err = stream.Send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Data{Data: piece[:n]}})
		}
		if readErr != nil {
			if !errors.Is(readErr, io.EOF) {
				return nil, readErr
			}
			break
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	// After io.EOF from Send, CloseAndRecv returns the reason.
	return stream.CloseAndRecv()
}
