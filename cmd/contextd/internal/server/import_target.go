package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// checkTarget refuses to import a part into a session that holds something else, or that
// has no room for it.
func (s *Server) checkTarget(ctx context.Context, id string, part importPart) error {
	session, err := s.store.Session(ctx, id)
	var missing *eventlog.NotFoundError
	if err != nil && !errors.As(err, &missing) {
		return err
	}
	if session.Head > 0 {
		if err := s.checkSame(ctx, session, part.Session); err != nil {
			return err
		}
	}
	return s.checkImportRoom(ctx, session, part)
}

// checkSame refuses a part that is not what the session holds, at whatever length. The
// harness's id of the session decides; where one of the two has none, the first event does.
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
	return otherSession(session.ID, "holds something else, with which the transcript does not begin")
}

func otherSession(id, reason string) error {
	return &eventlog.InvalidError{Field: "header.session_id", Reason: "must be another: " + id + " " + reason}
}

// checkImportRoom holds what would be appended against the limits of a session, in which
// envelopes count too. Which events are there already is looked up only where it matters.
func (s *Server) checkImportRoom(ctx context.Context, session eventlog.Session, part importPart) error {
	besides := part.sizeBesides("")
	if session.Head > 0 {
		besides = 0 // it is stored
	}
	if session.Head > 0 && s.limits.MaxSessionBytes > 0 {
		stored, err := harness.EnvelopeBytes(ctx, s.store, session.ID)
		if err != nil {
			return err
		}
		session.LogBytes += stored
	}
	room := func(known map[string]bool) error {
		n, bytes := 0, besides
		for _, e := range part.Events {
			if !known[e.ID] {
				n, bytes = n+1, bytes+part.size(e)
			}
		}
		return s.limits.CheckRoom(session, n, bytes)
	}
	if err := room(nil); err == nil || session.Head == 0 {
		return err
	}
	known := map[string]bool{}
	for e, err := range s.store.Read(ctx, session.ID, 1, session.Head) {
		if err != nil {
			return err
		}
		known[e.ID] = true
	}
	return room(known)
}
