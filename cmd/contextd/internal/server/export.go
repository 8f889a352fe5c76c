package server

import (
	"context"
	"errors"

	"google.golang.org/grpc"

	"github.com/contextd/contextd/internal/fair"
	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/memory"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

type exportStream = grpc.ServerStreamingServer[contextdv1.ExportTranscriptResponse]

// ExportTranscript writes a session, with the conversations of its subagents, as the
// file of a harness. The same log and request give the same bytes.
func (t *transcripts) ExportTranscript(req *contextdv1.ExportTranscriptRequest, stream exportStream) error {
	s := t.server
	if err := s.refuseDraining(); err != nil {
		return err
	}
	if err := checkExport(req); err != nil {
		return err
	}
	if err := s.limits.CheckPolicy(req.GetPolicy(), req.GetBudget()); err != nil {
		return err
	}
	session, err := s.store.Session(stream.Context(), req.GetSessionId())
	if err != nil {
		return err
	}
	parts, err := s.partsOf(stream.Context(), session.ID)
	if err != nil {
		return err
	}
	all := append([]eventlog.Session{session}, parts...)
	work, err := s.exportWork(stream.Context(), all)
	if err != nil {
		return err
	}
	held, err := s.work.Take(stream.Context(), work)
	if err != nil {
		return err
	}
	defer held.Release()
	ctx := memory.Exempt(stream.Context())
	read, err := s.transcriptOf(ctx, all)
	if err != nil {
		return err
	}
	var warnings []string
	if req.GetAsCompacted() {
		if warnings, err = s.compactTranscript(ctx, req, read.Sessions, session.Head); err != nil {
			return err
		}
	}
	for i := range read.Sessions {
		read.Sessions[i].Events = standing(read.Sessions[i].Events)
	}
	out := &transcriptWriter{turn: fair.Of(s.turns), ctx: ctx, send: func(data []byte, report *contextdv1.ExportReport) error {
		return stream.Send(&contextdv1.ExportTranscriptResponse{Data: data, Report: report})
	}}
	return out.writeTranscript(read, req.GetHarness(), warnings, harness.WriteOptions{
		SessionID: req.GetHarnessSessionId(), WorkingDirectory: req.GetWorkingDirectory(),
	})
}

// How many bytes of memory an export needs for each byte of a log, and for each event, however short it is.
const (
	exportFactor = 3
	exportEvent  = 1 << 10
)

// exportWork is how many bytes of memory the export of sessions takes.
func (s *Server) exportWork(ctx context.Context, all []eventlog.Session) (work uint64, err error) {
	for _, session := range all {
		besides, err := harness.EnvelopeBytes(ctx, s.store, session.ID)
		if err != nil {
			return 0, err
		}
		work += exportFactor*(session.LogBytes+besides) + exportEvent*uint64(session.Head)
	}
	return work, nil
}

// checkExport refuses an impossible export before a long log is read for it.
func checkExport(req *contextdv1.ExportTranscriptRequest) error {
	if !req.GetAsCompacted() {
		if req.GetBudget() != nil {
			return &eventlog.InvalidError{Field: "budget", Reason: "is for as_compacted alone"}
		}
		if req.GetPolicy() != nil {
			return &eventlog.InvalidError{Field: "policy", Reason: "is for as_compacted alone"}
		}
	}
	return refusedHarness("harness", harness.CheckWriter(req.GetHarness()))
}

// refusedHarness adds the field to the error for a harness without a reader or writer.
func refusedHarness(field string, err error) error {
	if unknown, ok := errors.AsType[*harness.FormatError](err); ok {
		return &eventlog.InvalidError{Field: field, Reason: unknown.Reason}
	}
	return err
}

// transcriptWriter sends a file in pieces.
type transcriptWriter struct {
	send  func(data []byte, report *contextdv1.ExportReport) error
	piece []byte
	// turn is the processor's; the writer has it while it computes, but not while it sends.
	turn fair.Turn
	ctx  context.Context
}

// writeTranscript sends a transcript in a harness's format and then the report, with the warnings given.
func (w *transcriptWriter) writeTranscript(t harness.Transcript, name string, warnings []string, o harness.WriteOptions) error {
	if err := w.turn.Begin(w.ctx); err != nil {
		return err
	}
	defer w.turn.End()
	report, err := harness.Write(w, t, name, o)
	if err != nil {
		return err
	}
	for _, warning := range report.Warnings {
		warnings = append(warnings, warning.String())
	}
	return w.finish(&contextdv1.ExportReport{
		Entries: uint64(report.Entries), Compactions: uint64(report.Compactions), Warnings: warnings,
	})
}

// Write implements io.Writer. It copies p.
func (w *transcriptWriter) Write(p []byte) (int, error) {
	written := len(p)
	for len(p) > 0 {
		if len(w.piece) == chunkBytes {
			w.turn.End()
			if err := w.send(w.piece, nil); err != nil {
				return 0, err
			}
			if err := w.turn.Begin(w.ctx); err != nil {
				return 0, err
			}
			w.piece = nil
		}
		if w.piece == nil {
			// gRPC keeps a piece until it is sent, so each needs memory of its own.
			w.piece = make([]byte, 0, chunkBytes)
		}
		n := min(len(p), chunkBytes-len(w.piece))
		w.piece = append(w.piece, p[:n]...)
		p = p[n:]
	}
	return written, nil
}

// finish sends the rest of the file, and the report after it.
func (w *transcriptWriter) finish(report *contextdv1.ExportReport) error {
	w.turn.End()
	if len(w.piece) > 0 {
		if err := w.send(w.piece, nil); err != nil {
			return err
		}
	}
	return w.send(nil, report)
}
