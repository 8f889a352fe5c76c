package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// checkTarget refuses to import a part into a session that has something else, or no room for the part.
func (s *Server) checkTarget(ctx context.Context, id string, part importPart) error {
	session, err := s.store.Session(ctx, id)
	var missing *eventlog.NotFoundError
	if err != nil && !errors.As(err, &missing) {
		return err
	}
	known := map[string]bool{}
	if session.Head > 0 {
		if err := s.checkSame(ctx, session, part.Session); err != nil {
			return err
		}
		for e, err := range s.store.Read(ctx, session.ID, 1, session.Head) {
			if err != nil {
				return err
			}
			known[e.ID] = true
		}
		if err := checkNewest(id, part.Events, known); err != nil {
			return err
		}
	}
	return s.checkImportRoom(ctx, session, part, known)
}

// checkNewest refuses a part in which an event that the log lacks comes before one that it has: appended, it would
// come after that.
func checkNewest(id string, events []eventlog.Event, known map[string]bool) error {
	missing := ""
	for _, e := range events {
		switch {
		case !known[e.ID]:
			missing = cmp.Or(missing, e.ID)
		case missing != "":
			return otherSession(id, fmt.Sprintf("has no event %.100q, which the transcript as it is read now has before %.100q; %s", missing, e.ID, readOtherwise))
		}
	}
	return nil
}

// readOtherwise is why a session is not what its transcript says.
const readOtherwise = "the harness changed the transcript, or an earlier version of contextd read it otherwise, and a log does not change"

// changedTranscript says what to do about an event that the transcript has with other content.
func changedTranscript(id string, err error) error {
	if conflict, ok := errors.AsType[*eventlog.EventConflictError](err); ok && conflict.Seq > 0 {
		return fmt.Errorf("header.session_id: must be another: %s has other content of event %d, %.100q; %s: %w", id, conflict.Seq, conflict.EventID, readOtherwise, err)
	}
	return fmt.Errorf("import into session %q: %w", id, err)
}

// checkSame refuses a part that is another conversation than the session's. The harness's session ids are compared;
// if one of them has none, the first events are.
func (s *Server) checkSame(ctx context.Context, session eventlog.Session, part harness.Session) error {
	have, want := session.Labels[transcript.LabelSessionID], part.Labels[transcript.LabelSessionID]
	if have != "" && want != "" {
		if have == want {
			return nil
		}
		return otherSession(session.ID, fmt.Sprintf("holds %.100q of its harness, and the transcript is of %.100q", have, want))
	}
	for e, err := range s.store.Read(ctx, session.ID, 1, 1) {
		if err != nil {
			return err
		}
		if e.ID == part.Events[0].ID {
			return nil
		}
	}
	return otherSession(session.ID, "holds something else, with which the transcript as it is read now does not begin")
}

func otherSession(id, reason string) error {
	return &eventlog.InvalidError{Field: "header.session_id", Reason: "must be another: " + id + " " + reason}
}

// checkImportRoom checks the unknown events, which would be appended, against the limits of a session. Envelopes
// count, too.
func (s *Server) checkImportRoom(ctx context.Context, session eventlog.Session, part importPart, known map[string]bool) error {
	n, bytes := 0, uint64(0)
	if session.Head == 0 {
		bytes = part.sizeBesides("") // else it is stored
	} else if s.limits.MaxSessionBytes > 0 {
		stored, err := harness.EnvelopeBytes(ctx, s.store, session.ID)
		if err != nil {
			return err
		}
		session.LogBytes += stored
	}
	for _, e := range part.Events {
		if !known[e.ID] {
			n, bytes = n+1, bytes+part.size(e)
		}
	}
	return s.limits.CheckRoom(session, n, bytes)
}
