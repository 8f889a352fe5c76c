package log

import (
	"fmt"
	"time"
)

// Session describes a conversation and its log.
type Session struct {
	ID string
	// Head is the newest durable event; 0 if there is none.
	Head  Seq
	Turns uint32
	// LogBytes is the sum of Size over all events up to Head, including events shared with a parent.
	LogBytes uint64
	// ArtifactBytes is the sum of Artifact.Size over all stored versions of the session's artifacts. In a fork of At
	// > 0 it also counts those of the parent at the time of the fork.
	ArtifactBytes          uint64
	CreateTime, UpdateTime time.Time
	Labels                 map[string]string
	// Settings are the session's policy and budget, as the caller encodes them. The store does not interpret them.
	Settings []byte
	// ChainHead is what Log.ChainHead returns for Head.
	ChainHead []byte
	// ParentID and ForkSeq are the parent of a fork and its last shared event; empty and 0 if the session is no fork.
	// The parent may have been deleted since.
	ParentID string
	ForkSeq  Seq
	// Incarnation distinguishes the session from earlier and later ones with its id. The store sets it.
	Incarnation Incarnation
	// Damaged says that the store cannot read all of the session. ListSessions lists such a session with what is
	// known of it, and DeleteSession deletes it; every other method returns a *CorruptError.
	Damaged bool
}

// Incarnation distinguishes sessions that have the same id one after the other. No two sessions of a store have the
// same incarnation while the store is open. 0 is the incarnation of no session.
type Incarnation uint64

// IncarnationName returns the incarnation as clients see it. It includes the create time, because every store numbers
// its incarnations from 1.
func (s Session) IncarnationName() string {
	return fmt.Sprintf("%x-%x", s.CreateTime.UnixNano(), uint64(s.Incarnation))
}

// SessionQuery selects a page of sessions, ordered by id.
type SessionQuery struct {
	// After is the id after which the page starts; empty for the first page.
	After string
	// Before is the id before which the page ends; empty is no bound. The store reads no sessions from it on.
	Before string
	// Limit is the most sessions to return; 0 is no limit.
	Limit int
	// Labels are labels that a session must have, with these values.
	Labels map[string]string
	// Brief permits the store to leave out ChainHead and ArtifactBytes, for callers that list many sessions and need
	// neither.
	Brief bool
}

// ForkRequest describes a session that shares its parent's events up to At.
type ForkRequest struct {
	ParentID string
	// At must not be after the parent's durable head. At 0 shares no events and no artifacts.
	At    Seq
	NewID string
	Time  time.Time
	// Labels are the new session's; nil takes over the parent's. The store copies them.
	Labels map[string]string
}

// ValidateSessionID checks the id of a new session. field names the id in the error.
func ValidateSessionID(field, id string) error {
	if id == "" {
		return &InvalidError{field, "must not be empty"}
	}
	if err := validateTexts(text{field, id}); err != nil {
		return err
	}
	return nil
}

// Validate checks the fields from which CreateSession makes a session.
func (s Session) Validate() error {
	if err := ValidateSessionID("session_id", s.ID); err != nil {
		return err
	}
	if err := validateLabels(s.Labels); err != nil {
		return err
	}
	return nil
}

// Matches reports whether the session has all the labels.
func (s Session) Matches(labels map[string]string) bool {
	for k, v := range labels {
		if got, ok := s.Labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// Spans reports whether an id is between After and Before, both excluded.
func (q SessionQuery) Spans(id string) bool { return id > q.After && (q.Before == "" || id < q.Before) }

// Validate checks Limit.
func (q SessionQuery) Validate() error {
	if q.Limit < 0 {
		return &InvalidError{"page_size", "must not be negative"}
	}
	return nil
}

// Validate checks a request; head is the parent's.
func (r ForkRequest) Validate(head Seq) error {
	if err := ValidateSessionID("new_session_id", r.NewID); err != nil {
		return err
	}
	if r.At > head {
		return &InvalidError{"at_seq", fmt.Sprintf("%d is after the log's head %d", r.At, head)}
	}
	if err := validateLabels(r.Labels); err != nil {
		return err
	}
	return nil
}
