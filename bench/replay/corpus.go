package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/evaluate"
	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// corpusFiles lists the files below dir that are transcripts, and returns the number of other files.
// Unreadable files are passed to skip.
func corpusFiles(dir, only string, skip func(path string, err error)) (files []string, others int, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, only) {
			return err
		}
		data, err := readFile(path)
		if err != nil {
			skip(path, err)
			return nil
		}
		if _, ok := harness.Detect(data); ok {
			files = append(files, path)
		} else {
			others++
		}
		return nil
	})
	slices.Sort(files)
	return files, others, err
}

func readFile(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return data, err
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// readSessions reads the sessions of one file without a daemon, as if model, if not empty, had written them. A file
// without sessions is passed to skip.
func readSessions(path, model string, gauge budget.Gauge, skip func(path string, err error)) ([]*session, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	transcript, err := harness.Read(bytes.NewReader(data), "")
	if err != nil {
		skip(path, err)
		return nil, nil
	}
	var out []*session
	for _, part := range transcript.Sessions {
		for _, e := range part.Events {
			if m, ok := e.Body.(*eventlog.Message); ok && m.Role == eventlog.RoleAssistant && model != "" {
				m.Model = model
			}
		}
		s, err := evaluate.SessionOf(path, transcript.Harness, part, gauge)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, &session{Session: s})
	}
	return out, nil
}

// importFiles reads the events of all sessions through a daemon.
func importFiles(ctx context.Context, d *daemon, files []file) error {
	for i, f := range files {
		if err := importFile(ctx, d, fmt.Sprintf("import/f%d", i), f.path, f.sessions); err != nil {
			return err
		}
	}
	return nil
}

// importFile imports a file into the daemon, and sets the sessions' events to those that the daemon returns.
func importFile(ctx context.Context, d *daemon, id, path string, sessions []*session) error {
	data, err := readFile(path)
	if err != nil {
		return err
	}
	stream, err := d.in.ImportTranscript(ctx)
	if err != nil {
		return err
	}
	send := func(r *contextdv1.ImportTranscriptRequest) error {
		err := stream.Send(r)
		if errors.Is(err, io.EOF) {
			return nil // CloseAndRecv returns the reason
		}
		return err
	}
	header := &contextdv1.ImportHeader{SessionId: id}
	if err := send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Header{Header: header}}); err != nil {
		return err
	}
	for piece := range slices.Chunk(data, 1<<20) {
		if err := send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Data{Data: piece}}); err != nil {
			return err
		}
	}
	if _, err := stream.CloseAndRecv(); err != nil {
		return fmt.Errorf("import %s: %w", path, err)
	}
	for _, s := range sessions {
		from := id
		if s.Suffix != "" {
			from += "/" + s.Suffix
		}
		if s.protos, err = readEvents(ctx, d, from); err != nil {
			return fmt.Errorf("read what was imported from %s: %w", path, err)
		}
		if len(s.protos) != len(s.Events) {
			return fmt.Errorf("import %s: the log holds %d events of %d", path, len(s.protos), len(s.Events))
		}
	}
	return nil
}

func readEvents(ctx context.Context, d *daemon, id string) ([]*contextdv1.Event, error) {
	stream, err := d.api.ReadEvents(ctx, &contextdv1.ReadEventsRequest{SessionId: id})
	if err != nil {
		return nil, err
	}
	var events []*contextdv1.Event
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, err
		}
		for _, e := range answer.GetEvents() {
			e.Seq, e.Turn = 0, 0 // the log that they are appended to assigns new ones
			events = append(events, e)
		}
	}
}
