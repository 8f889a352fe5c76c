package log

import (
	"fmt"
	"time"
)

// Session is a conversation and what is known of its log.
type Session struct {
	ID string
	// Head is the newest durable event; 0 if there is none.
	Head  Seq
	Turns uint32
	// LogBytes is the sum of Size over all events up to Head, shared events of a
	// parent included.
	LogBytes uint64
	// ArtifactBytes is the sum of Artifact.Size over all stored versions of the session's artifacts. In a
	// fork it also counts what its parent had when the fork was made.
	ArtifactBytes          uint64
	CreateTime, UpdateTime time.Time
	Labels                 map[string]string
	// Settings is opaque to the store: the session's policy and budget as the
	// layer above encodes them.
	Settings []byte
	// ChainHead is what Log.ChainHead returns for Head.
	ChainHead []byte
	// ParentID and ForkSeq say where a fork began; empty and 0 otherwise. The
	// parent may have been deleted since.
	ParentID string
	ForkSeq  Seq
	// Incarnation distinguishes the session from others that had its id before, or will
	// have it later. The store sets it.
	Incarnation Incarnation
	// Damaged says that the store cannot read the session whole. ListSessions lists such a
	// session with what is known of it; every other method answers with a *CorruptError.
	Damaged bool
}

// Incarnation names one life of a session id, from the session's creation to its
// deletion. No two sessions have the same while a store is open; 0 is no session's.
type Incarnation uint64

// IncarnationName is the incarnation as clients see it. The create time is part of it, because another store
// numbers its incarnations from the beginning again.
func (s Session) IncarnationName() string {
	return fmt.Sprintf("%x-%x", s.CreateTime.UnixNano(), uint64(s.Incarnation))
}

// SessionQuery selects a page of sessions, ordered by id.
type SessionQuery struct {
	// After is the id after which the page starts; empty for the first.
	After string
	// Before is the first id that is not listed; empty lists to the end. The store reads nothing from there
	// on.
	Before string
	// Limit is the greatest number of sessions to return; 0 means no limit.
	Limit int
	// Labels must all be there with these values.
	Labels map[string]string
	// Brief lets the store leave out ChainHead and ArtifactBytes, for a caller who looks at many
	// sessions and describes few.
	Brief bool
}

// ForkRequest makes a session that shares its parent's events up to At.
type ForkRequest struct {
	ParentID string
	// At must not be after the parent's durable head; 0 shares nothing.
	At    Seq
	NewID string
	Time  time.Time
	// Labels are those of the new session; nil for the parent's. The store copies them.
	Labels map[string]string
}

// ValidateSessionID checks the id of a session to be made; field names it in the
// error.
func ValidateSessionID(field, id string) error {
	if id == "" {
		return &InvalidError{field, "must not be empty"}
	}
	if err := validateTexts(text{field, id}); err != nil {
		return err
	}
	return nil
}

// Validate checks what a session is made from.
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

// Spans reports whether an id is between After and Before.
func (q SessionQuery) Spans(id string) bool { return id > q.After && (q.Before == "" || id < q.Before) }

// Validate checks the page's size.
func (q SessionQuery) Validate() error {
	if q.Limit < 0 {
		return &InvalidError{"page_size", "must not be negative"}
	}
	return nil
}

// Validate checks what a fork is made from; head is its parent's.
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
