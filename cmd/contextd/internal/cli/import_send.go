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

// sendBytes is how much of a file goes into one message.
const sendBytes = 31 << 10

var gzipMagic = []byte{0x1f, 0x8b}

// transcriptInput is a file without its compression, or the rows of a database.
type transcriptInput struct {
	*bufio.Reader
	open []io.Closer // the last one is closed first
	// warnings are what was found wrong with the file itself.
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

// newTranscriptInput has a buffer of so many bytes, which can be looked at ahead.
func newTranscriptInput(size int) *transcriptInput {
	return &transcriptInput{Reader: bufio.NewReaderSize(nil, size), progress: &progress{}}
}

// openTranscript opens a file, or stdin for "-", and shows how much of a file was read.
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

// openFile goes on with another file.
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

// database goes on with the rows of a file that is a database.
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
		return nil //nolint:nilerr // the reader of the file gets it
	}
	plain, err := gzip.NewReader(bufio.NewReader(io.MultiReader(bytes.NewReader(t.buffered()), r)))
	if err != nil {
		return compressedError(err)
	}
	t.Reset(compressed{plain})
	return nil
}

// compressed is what a compressed file says.
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

// buffered copies what was read ahead.
func (t *transcriptInput) buffered() []byte {
	ahead, _ := t.Peek(t.Buffered()) // what is buffered is there
	return bytes.Clone(ahead)
}

// send streams the file, and adds its warnings to what the daemon answers.
func (t *transcriptInput) send(ctx context.Context, api api, header *contextdv1.ImportHeader) (*contextdv1.ImportTranscriptResponse, error) {
	resp, err := sendTranscript(ctx, api, header, t)
	if err != nil {
		return nil, formatError("PATH", err)
	}
	resp.Warnings = append(slices.Clone(t.warnings), resp.GetWarnings()...)
	return resp, nil
}

// fill reads until a piece is full. Unlike that of io.ReadFull, its error at the end is always the
// reader's: that of a compressed file which was cut off is no end.
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
	defer cancel() // what was begun and not ended must not be imported
	stream, err := api.transcripts.ImportTranscript(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Header{Header: header}})
	for err == nil {
		// gRPC keeps what it is given until it is sent: a new piece each time.
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
	// Where sending failed with io.EOF, this says why.
	return stream.CloseAndRecv()
}
