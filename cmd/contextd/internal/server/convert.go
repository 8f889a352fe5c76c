package server

import (
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

type convertStream = grpc.BidiStreamingServer[contextdv1.ConvertTranscriptRequest, contextdv1.ConvertTranscriptResponse]

// ConvertTranscript rewrites a transcript for another harness and keeps nothing.
func (t *transcripts) ConvertTranscript(stream convertStream) error {
	s := t.server
	if err := s.refuseDraining(); err != nil {
		return err
	}
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) || err == nil && first.GetHeader() == nil {
		return &eventlog.InvalidError{Field: "header", Reason: "must be the first message"}
	}
	if err != nil {
		return err
	}
	header := first.GetHeader()
	if err := checkWriter("header.to", header.GetTo()); err != nil {
		return err
	}
	body := &transcriptReader{limit: s.limits.MaxImportBytes, receive: func() ([]byte, bool, error) {
		req, err := stream.Recv()
		return req.GetData(), req.GetHeader() != nil, err
	}}
	read, err := body.transcript(header.GetFrom())
	if err != nil {
		return err
	}
	var warnings []string
	for _, w := range read.Warnings {
		warnings = append(warnings, w.String())
	}
	out := &transcriptWriter{send: func(data []byte, report *contextdv1.ExportReport) error {
		return stream.Send(&contextdv1.ConvertTranscriptResponse{Data: data, Report: report})
	}}
	return out.writeTranscript(read, header.GetTo(), warnings, harness.WriteOptions{
		SessionID: header.GetHarnessSessionId(), WorkingDirectory: header.GetWorkingDirectory(),
	})
}
