// Package tenantlog divides one store among tenants. Each tenant has a view of the store with its own sessions. A
// view cannot name another tenant's sessions, so code that uses a view need not know of tenants.
package tenantlog

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// In the store, the id of a tenant's session is mark + tenant's name + separator + the id that the tenant gave it. No
// id of the API begins with the mark, and all of them sort before it. No tenant's name has a separator.
const (
	mark      = "~"
	separator = "/"
	// afterSeparator is the first text after all texts that begin with the separator.
	afterSeparator = "0"
)

// ValidName reports whether a text may be a tenant's name: 1 to 64 letters, digits and ._@-, beginning with a letter
// or a digit.
func ValidName(name string) bool {
	for i, r := range name {
		alphanumeric := r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
		if !alphanumeric && (i == 0 || !strings.ContainsRune("._@-", r)) {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// Of returns the view of a tenant. The tenant "" has the sessions without a mark, whose ids are the same in the
// store. The name must be valid. Closing a view closes the store.
func Of(store eventlog.Store, tenant string) eventlog.Store {
	if tenant == "" {
		return view{store: store, end: mark}
	}
	return view{store, mark + tenant + separator, mark + tenant + afterSeparator}
}

// view does not embed the store: a method that eventlog.Store gains later must not pass ids through unchanged.
type view struct {
	store eventlog.Store
	// prefix is the beginning of the view's ids in the store, and end is after all of these.
	prefix, end string
}

// inward maps a session's id in the view to its id in the store.
func (v view) inward(id string) (string, error) {
	if v.prefix == "" && strings.HasPrefix(id, mark) {
		return "", eventlog.NoSession(id)
	}
	return v.prefix + id, nil
}

// naming is inward for the id of a new session. field names the id in errors. The store itself refuses an empty id.
func (v view) naming(field, id string) (string, error) {
	if id == "" {
		return "", nil
	}
	name, err := v.inward(id)
	if err != nil {
		err = &eventlog.InvalidError{Field: field, Reason: "must not begin with " + mark}
	}
	return name, err
}

// outward maps a session of the store to the session in the view.
func (v view) outward(s eventlog.Session, err error) (eventlog.Session, error) {
	s.ID = v.local(s.ID)
	s.ParentID = v.local(s.ParentID)
	return s, v.failure(err)
}

func (v view) local(id string) string { return strings.TrimPrefix(id, v.prefix) }

// failure replaces the store's ids in an error by the view's.
func (v view) failure(err error) error {
	if err == nil || v.prefix == "" {
		return err
	}
	if missing, ok := errors.AsType[*eventlog.NotFoundError](err); ok {
		return &eventlog.NotFoundError{Kind: missing.Kind, Name: v.local(missing.Name)}
	}
	if exists, ok := errors.AsType[*eventlog.ExistsError](err); ok {
		return &eventlog.ExistsError{Kind: exists.Kind, Name: v.local(exists.Name)}
	}
	if conflict, ok := errors.AsType[*eventlog.ConflictError](err); ok {
		return &eventlog.ConflictError{Session: v.local(conflict.Session), What: conflict.What}
	}
	if lost, ok := errors.AsType[*eventlog.LostError](err); ok {
		out := *lost
		out.Session = v.local(lost.Session)
		return &out
	}
	if corrupt, ok := errors.AsType[*eventlog.CorruptError](err); ok {
		return &eventlog.CorruptError{Session: v.local(corrupt.Session), What: corrupt.What, Reason: corrupt.Reason}
	}
	return err
}

// Session implements eventlog.Store.
func (v view) Session(ctx context.Context, id string) (eventlog.Session, error) {
	name, err := v.inward(id)
	if err != nil {
		return eventlog.Session{}, err
	}
	return v.outward(v.store.Session(ctx, name))
}

// Read implements eventlog.Store.
func (v view) Read(ctx context.Context, id string, from, to eventlog.Seq) iter.Seq2[eventlog.Event, error] {
	return within(v, id, func(name string) iter.Seq2[eventlog.Event, error] { return v.store.Read(ctx, name, from, to) })
}

// ReadRuns implements eventlog.RunsReader.
func (v view) ReadRuns(ctx context.Context, id string, runs eventlog.Ranges) iter.Seq2[eventlog.Event, error] {
	return within(v, id, func(name string) iter.Seq2[eventlog.Event, error] { return eventlog.ReadRuns(ctx, v.store, name, runs) })
}

// CreateSession implements eventlog.Store.
func (v view) CreateSession(ctx context.Context, s eventlog.Session) (eventlog.Session, error) {
	var err error
	if s.ID, err = v.naming("session_id", s.ID); err != nil {
		return eventlog.Session{}, err
	}
	return v.outward(v.store.CreateSession(ctx, s))
}

// ListSessions implements eventlog.Store.
func (v view) ListSessions(ctx context.Context, q eventlog.SessionQuery) ([]eventlog.Session, error) {
	q.After = v.prefix + q.After
	if q.Before == "" || v.prefix == "" && q.Before > v.end {
		q.Before = v.end
	} else {
		q.Before = v.prefix + q.Before
	}
	all, err := v.store.ListSessions(ctx, q)
	for i, s := range all {
		all[i], _ = v.outward(s, nil)
	}
	return all, v.failure(err)
}

// Fork implements eventlog.Store.
func (v view) Fork(ctx context.Context, r eventlog.ForkRequest) (eventlog.Session, error) {
	parent, err := v.inward(r.ParentID)
	if err != nil {
		return eventlog.Session{}, err
	}
	if r.NewID, err = v.naming("new_session_id", r.NewID); err != nil {
		return eventlog.Session{}, err
	}
	r.ParentID = parent
	return v.outward(v.store.Fork(ctx, r))
}

// DeleteSession implements eventlog.Store.
func (v view) DeleteSession(ctx context.Context, id string, of eventlog.Incarnation, head *eventlog.Seq) error {
	name, err := v.inward(id)
	if err != nil {
		return err
	}
	return v.failure(v.store.DeleteSession(ctx, name, of, head))
}

// WaitErased implements eventlog.Store.
func (v view) WaitErased(ctx context.Context, of eventlog.Incarnation) error {
	return v.failure(v.store.WaitErased(ctx, of))
}

// Append implements eventlog.Store.
func (v view) Append(ctx context.Context, id string, b eventlog.Batch) (eventlog.Commit, error) {
	name, err := v.naming("session_id", id)
	if err != nil {
		return nil, err
	}
	c, err := v.store.Append(ctx, name, b)
	if err != nil || v.prefix == "" {
		return c, v.failure(err)
	}
	return commit{c, v}, nil
}

// commit is an append of a view.
type commit struct {
	eventlog.Commit
	view view
}

// Wait implements eventlog.Commit.
func (c commit) Wait(ctx context.Context) ([]eventlog.Receipt, error) {
	receipts, err := c.Commit.Wait(ctx)
	return receipts, c.view.failure(err)
}

// ChainHead implements eventlog.Store.
func (v view) ChainHead(ctx context.Context, id string, seq eventlog.Seq) ([]byte, error) {
	name, err := v.inward(id)
	if err != nil {
		return nil, err
	}
	head, err := v.store.ChainHead(ctx, name, seq)
	return head, v.failure(err)
}

// WaitPast implements eventlog.Store.
func (v view) WaitPast(ctx context.Context, id string, seq eventlog.Seq) (eventlog.Seq, error) {
	name, err := v.inward(id)
	if err != nil {
		return 0, err
	}
	head, err := v.store.WaitPast(ctx, name, seq)
	return head, v.failure(err)
}

// PutArtifacts implements eventlog.Store.
func (v view) PutArtifacts(ctx context.Context, id string, all ...eventlog.Artifact) error {
	name, err := v.inward(id)
	if err != nil {
		return err
	}
	return v.failure(v.store.PutArtifacts(ctx, name, all...))
}

// Artifact implements eventlog.Store.
func (v view) Artifact(ctx context.Context, id, kind string, seq eventlog.Seq, artifactID string) (eventlog.Artifact, error) {
	name, err := v.inward(id)
	if err != nil {
		return eventlog.Artifact{}, err
	}
	a, err := v.store.Artifact(ctx, name, kind, seq, artifactID)
	return a, v.failure(err)
}

// Artifacts implements eventlog.Store.
func (v view) Artifacts(ctx context.Context, id string, q eventlog.ArtifactQuery) iter.Seq2[eventlog.Artifact, error] {
	return within(v, id, func(name string) iter.Seq2[eventlog.Artifact, error] { return v.store.Artifacts(ctx, name, q) })
}

// ArtifactKinds implements eventlog.Store.
func (v view) ArtifactKinds(ctx context.Context, id string) ([]string, error) {
	name, err := v.inward(id)
	if err != nil {
		return nil, err
	}
	kinds, err := v.store.ArtifactKinds(ctx, name)
	return kinds, v.failure(err)
}

// Lease implements eventlog.Store.
func (v view) Lease(ctx context.Context, id string, of eventlog.Incarnation, work string, d time.Duration) (bool, error) {
	name, err := v.inward(id)
	if err != nil {
		return false, err
	}
	has, err := v.store.Lease(ctx, name, of, work, d)
	return has, v.failure(err)
}

// Release implements eventlog.Store.
func (v view) Release(ctx context.Context, id string, of eventlog.Incarnation, work string) error {
	name, err := v.inward(id)
	if err != nil {
		return err
	}
	return v.failure(v.store.Release(ctx, name, of, work))
}

// within iterates over something of a session of the view.
func within[T any](v view, id string, all func(name string) iter.Seq2[T, error]) iter.Seq2[T, error] {
	name, err := v.inward(id)
	if err == nil && v.prefix == "" {
		return all(name)
	}
	return func(yield func(T, error) bool) {
		if err != nil {
			var none T
			yield(none, err)
			return
		}
		for one, err := range all(name) {
			if !yield(one, v.failure(err)) {
				return
			}
		}
	}
}

// Capabilities implements eventlog.Store.
func (v view) Capabilities() eventlog.Capabilities { return v.store.Capabilities() }

// Healthy implements eventlog.Store.
func (v view) Healthy() error { return v.store.Healthy() }

// Close implements eventlog.Store.
func (v view) Close() error { return v.store.Close() }
