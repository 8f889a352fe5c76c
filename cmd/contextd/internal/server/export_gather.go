package server

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// listPage is how many sessions are listed at once to find those of subagents.
const listPage = 256

// transcriptOf reads a session and the subagents' sessions that were imported with it, and restores the form in which
// the harness's reader had made them.
func (s *Server) transcriptOf(ctx context.Context, all []eventlog.Session) (out harness.Transcript, err error) {
	id := all[0].ID
	for _, session := range all {
		part := harness.Session{Labels: maps.Clone(session.Labels)}
		if session.ID != id {
			part.Suffix, part.ParentCallID = strings.TrimPrefix(session.ID, id+"/"), session.Labels[labelParentCall]
		}
		delete(part.Labels, labelParentSession)
		delete(part.Labels, labelParentCall)
		if part.Events, err = s.asRead(ctx, session); err != nil {
			return harness.Transcript{}, err
		}
		if part.Envelopes, err = harness.Envelopes(ctx, s.store, session.ID, part.Events); err != nil {
			return harness.Transcript{}, err
		}
		if _, err := s.stillThere(ctx, session, wire.MarkToProto(session)); err != nil {
			return harness.Transcript{}, err
		}
		out.Sessions = append(out.Sessions, part)
	}
	return out, nil
}

// partsOf lists the sessions that were imported with a session, in the order of the
// file.
func (s *Server) partsOf(ctx context.Context, id string) ([]eventlog.Session, error) {
	var parts []eventlog.Session
	prefix := id + "/"
	for after := prefix; ; {
		page, err := s.store.ListSessions(ctx, eventlog.SessionQuery{After: after, Limit: listPage})
		if err != nil {
			return nil, err
		}
		for _, session := range page {
			after = session.ID
			if !strings.HasPrefix(session.ID, prefix) {
				page = nil
				break
			}
			if belongs(session, id) {
				parts = append(parts, session)
			}
		}
		if len(page) < listPage {
			break
		}
	}
	slices.SortFunc(parts, func(a, b eventlog.Session) int {
		// Readers number subagents from 1, without leading zeros.
		return cmp.Or(cmp.Compare(stem(a.ID), stem(b.ID)), cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	return parts, nil
}

// belongs reports whether a session was imported with the session id. A fork of such a session has its labels too,
// but another parent.
func belongs(session eventlog.Session, id string) bool {
	return session.Labels[labelParentSession] == id && (session.ParentID == id || session.ParentID == "")
}

// stem is an id without the number at its end.
func stem(id string) string { return strings.TrimRight(id, "0123456789") }

// asRead reads a session's events, and removes what the log and the import added to them.
func (s *Server) asRead(ctx context.Context, session eventlog.Session) ([]eventlog.Event, error) {
	events := make([]eventlog.Event, 0, session.Head)
	for e, err := range s.store.Read(ctx, session.ID, 1, session.Head) {
		if err != nil {
			return nil, err
		}
		e.Seq, e.Turn, e.Tokens = 0, 0, eventlog.TokenCounts{}
		events = append(events, unlabelled(e))
	}
	return events, nil
}

// standing removes compactions that were reverted from the events of a whole log: a harness would apply them.
func standing(events []eventlog.Event) []eventlog.Event {
	var compactions reduce.Compactions
	for i, e := range events {
		e.Seq = eventlog.Seq(i + 1)
		compactions.Read(e)
	}
	hold := compactions.InForce()
	out := make([]eventlog.Event, 0, len(events))
	for i, e := range events {
		if c, ok := e.Body.(*eventlog.Compaction); ok && c.Decision != nil {
			if _, holds := slices.BinarySearch(hold, eventlog.Seq(i+1)); !holds {
				continue
			}
		}
		out = append(out, e)
	}
	return out
}
