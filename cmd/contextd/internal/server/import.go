package server

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"

	"github.com/contextd/contextd/cmd/contextd/internal/limit"
	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// transcripts implements TranscriptService.
type transcripts struct {
	contextdv1.UnimplementedTranscriptServiceServer
	server *Server
}

type importStream = grpc.ClientStreamingServer[contextdv1.ImportTranscriptRequest, contextdv1.ImportTranscriptResponse]

// ImportTranscript reads a transcript into a session. Conversations of subagents become forks that
// are named after the session and share no events with it. It may be repeated: events that the log
// already has are not appended again.
func (t *transcripts) ImportTranscript(stream importStream) error {
	s := t.server
	if err := s.refuseDraining(); err != nil {
		return err
	}
	header, body, err := openTranscript(stream.Context(), s.turns, stream.Recv, (*contextdv1.ImportTranscriptRequest).GetHeader, s.limits.MaxImportBytes)
	if err != nil {
		return err
	}
	account, err := s.imports.Open(stream.Context())
	if err != nil {
		return err
	}
	defer account.Close()
	// The envelopes for a later export have parts of the file, so the file itself is scrubbed.
	body.scrub = s.scrub
	read, err := body.transcript("header.harness", header.GetHarness(), account)
	if err != nil {
		return err
	}
	out, err := s.importTranscript(stream.Context(), header.GetSessionId(), read)
	if err != nil {
		return err
	}
	s.audit(stream.Context(), "transcript imported", header.GetSessionId(), "events", out.GetEvents())
	return stream.SendAndClose(out)
}

func (s *Server) importTranscript(ctx context.Context, id string, t harness.Transcript) (*contextdv1.ImportTranscriptResponse, error) {
	out := &contextdv1.ImportTranscriptResponse{
		DroppedDuplicates: uint32(t.DroppedDuplicates),
		RenamedIds:        uint32(t.RenamedIDs),
	}
	for _, w := range t.Warnings {
		out.Warnings = append(out.Warnings, w.String())
	}
	parts := make([]importPart, len(t.Sessions))
	// Everything is checked before anything is appended.
	for i, session := range t.Sessions {
		parts[i] = partOf(session)
		if err := s.checkImport(ctx, id, parts[i]); err != nil {
			return nil, err
		}
	}
	for _, part := range parts {
		target := partID(id, part.Suffix)
		if part.Suffix != "" {
			out.Warnings = append(out.Warnings, fmt.Sprintf("%s is a conversation of its own and went to session %s", part.Suffix, target))
		}
		labels := partLabels(id, part.Session, func(warning string) { out.Warnings = append(out.Warnings, warning) })
		begin := func() error {
			err := s.beginPart(ctx, id, part.Session, labels)
			if _, ok := errors.AsType[*eventlog.ExistsError](err); ok {
				return s.checkTarget(ctx, target, part) // another has begun it meanwhile
			}
			return err
		}
		if err := s.importSession(ctx, target, begin, part, out); err != nil {
			return nil, err
		}
	}
	session, err := s.store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	out.Session, err = wire.SessionToProto(session)
	return out, err
}

func partID(id, suffix string) string {
	if suffix == "" {
		return id
	}
	return id + "/" + suffix
}

// maxSessionID is the API's limit on a session_id.
const maxSessionID = 256

func (s *Server) checkImport(ctx context.Context, id string, part importPart) error {
	target := partID(id, part.Suffix)
	if len(target) > maxSessionID {
		return &eventlog.InvalidError{Field: "header.session_id", Reason: fmt.Sprintf("must be short enough for %s to have at most %d characters", target, maxSessionID)}
	}
	if part.Suffix != "" {
		if err := s.checkPart(ctx, id, target); err != nil {
			return err
		}
	}
	for _, e := range part.Events {
		if err := s.limits.CheckEvent("data", part.size(e)); err != nil {
			return err
		}
	}
	return s.checkTarget(ctx, target, part)
}

// checkPart refuses to add a subagent's conversation to a session that is not of the same subagent.
func (s *Server) checkPart(ctx context.Context, id, target string) error {
	session, err := s.store.Session(ctx, target)
	if eventlog.IsMissing(err) {
		return nil
	}
	if err == nil && !belongs(session, id) {
		err = &eventlog.InvalidError{Field: "header.session_id", Reason: fmt.Sprintf("must be another: %s exists already and was not imported with %s", target, id)}
	}
	return err
}

// beginPart makes the session of a part. A subagent's session is a fork of the session that started it, which must
// exist. The fork has the settings of that session, and shares no events with it.
func (s *Server) beginPart(ctx context.Context, id string, part harness.Session, labels map[string]string) error {
	target, parent := partID(id, part.Suffix), ""
	if part.Suffix == "" {
		var err error
		if parent, labels, err = s.parentOf(ctx, id, part, labels); err != nil {
			return err
		}
	} else if part.Sidechain() {
		parent = id
	}
	if parent == "" {
		_, err := s.create(ctx, eventlog.Session{ID: target, CreateTime: s.clock(), Labels: labels})
		return err
	}
	return s.quotas.makeSession(ctx, func(ctx context.Context) error {
		_, err := s.store.Fork(ctx, eventlog.ForkRequest{ParentID: parent, NewID: target, Time: s.clock(), Labels: labels})
		return err
	})
}

// importSession calls begin if the session does not exist, and appends the events in batches within the limits.
func (s *Server) importSession(ctx context.Context, id string, begin func() error, part importPart, out *contextdv1.ImportTranscriptResponse) error {
	known, err := s.settingsOf(ctx, id)
	if err != nil {
		return err
	}
	if !known.exists {
		if err := begin(); err != nil {
			return err
		}
		if known, err = s.settingsOf(ctx, id); err != nil {
			return err
		}
	}
	// All batches must go to one incarnation: a later one would not have the beginning of the transcript.
	whole := part.besides[""]
	for events := part.Events; len(events) > 0; {
		n := part.batch(s.limits, events)
		if err := s.importBatch(ctx, id, known.session, part, events[:n], whole, out); err != nil {
			return err
		}
		events, whole = events[n:], nil
	}
	return nil
}

// importBatch appends a batch to a session, and stores its envelopes and the given ones.
func (s *Server) importBatch(ctx context.Context, id string, session eventlog.Session, part importPart, events []eventlog.Event, envelopes []harness.Envelope, out *contextdv1.ImportTranscriptResponse) error {
	batch := make([]eventlog.Event, len(events))
	for i := range batch {
		batch[i] = labelled(events[i])
	}
	p, err := s.admitTo(ctx, id, eventlog.Batch{Events: batch, Of: &session.Incarnation})
	if err != nil {
		return changedTranscript(id, err)
	}
	answer, err := s.settle(ctx, p)
	if err != nil {
		return err
	}
	seqs := make(map[string]eventlog.Seq, len(batch))
	for i, receipt := range answer.GetReceipts() {
		seqs[receipt.GetEventId()] = eventlog.Seq(receipt.GetSeq())
		envelopes = append(envelopes, part.besides[receipt.GetEventId()]...)
		if receipt.GetDuplicate() {
			continue
		}
		out.Events++
		if _, ok := batch[i].Body.(*eventlog.Compaction); ok {
			out.Compactions++
		}
	}
	// Envelopes are stored under their events' seqs. If an import stops between the two, repeating it completes it.
	if err := harness.PutEnvelopes(ctx, s.store, id, session.Incarnation, envelopes, seqs, session.Head > 0); err != nil {
		return fmt.Errorf("import into session %q: %w", id, err)
	}
	return nil
}

// importPart is one session of a transcript. Its envelopes are listed by event id; those of the session itself are under "".
type importPart struct {
	harness.Session
	besides map[string][]harness.Envelope
}

func partOf(s harness.Session) importPart {
	p := importPart{s, make(map[string][]harness.Envelope, len(s.Envelopes))}
	for _, e := range s.Envelopes {
		p.besides[e.Event] = append(p.besides[e.Event], e)
	}
	return p
}

// size is the size of an event with its envelopes.
func (p importPart) size(e eventlog.Event) uint64 { return eventlog.Size(e) + p.sizeBesides(e.ID) }

// sizeBesides returns the size of the envelopes of an event, or for "" of those of the session.
func (p importPart) sizeBesides(event string) (n uint64) {
	for _, one := range p.besides[event] {
		n += uint64(len(one.Difference))
	}
	return n
}

// importBatchBytes limits a batch of an import, so that other writers have their turns in between.
const importBatchBytes = 1 << 20

// batch returns how many of the events go into the next batch: at least one.
func (p importPart) batch(l limit.Limits, events []eventlog.Event) int {
	var total uint64
	for i, e := range events {
		total += p.size(e)
		if i > 0 && (total > min(l.MaxBatchBytes, importBatchBytes) || uint64(i) == l.MaxBatchEvents) {
			return i
		}
	}
	return len(events)
}
