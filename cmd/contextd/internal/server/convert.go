package server

import (
	"google.golang.org/grpc"

	"github.com/contextd/contextd/internal/fair"
	"github.com/contextd/contextd/internal/harness"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

type convertStream = grpc.BidiStreamingServer[contextdv1.ConvertTranscriptRequest, contextdv1.ConvertTranscriptResponse]

// ConvertTranscript converts a transcript for another harness, and stores nothing.
func (t *transcripts) ConvertTranscript(stream convertStream) error {
	s := t.server
	if err := s.refuseDraining(); err != nil {
		return err
	}
	header, body, err := openTranscript(stream.Context(), s.turns, stream.Recv, (*contextdv1.ConvertTranscriptRequest).GetHeader, s.limits.MaxImportBytes)
	if err != nil {
		return err
	}
	if err := refusedHarness("header.to", harness.CheckWriter(header.GetTo())); err != nil {
		return err
	}
	account, err := s.imports.Open(stream.Context())
	if err != nil {
		return err
	}
	defer account.Close()
	read, err := body.transcript("header.from", header.GetFrom(), account)
	if err != nil {
		return err
	}
	// The writer makes copies, which take as much memory as what was read.
	if err := account.Retain(account.Retained()); err != nil {
		return err
	}
	var warnings []string
	for _, w := range read.Warnings {
		warnings = append(warnings, w.String())
	}
	out := &transcriptWriter{turn: fair.Of(s.turns), ctx: stream.Context(), send: func(data []byte, report *contextdv1.ExportReport) error {
		return stream.Send(&contextdv1.ConvertTranscriptResponse{Data: data, Report: report})
	}}
	return out.writeTranscript(read, header.GetTo(), warnings, harness.WriteOptions{
		SessionID: header.GetHarnessSessionId(), WorkingDirectory: header.GetWorkingDirectory(),
	})
}
