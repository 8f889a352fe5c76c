package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/contextd/contextd/internal/artifact"
	"github.com/contextd/contextd/internal/ledger"
	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

const (
	// eventKind is the kind of artifacts with lifecycle events. The one with number n is stored at seq beforeFirst+n,
	// which is after every event that a log can have, so that no fork shares it.
	eventKind   = "lifecycle"
	beforeFirst = eventlog.Seq(1) << 62
	// eventVersion is the version of contextd.storage.v1.LifecycleEvent that is written.
	eventVersion = 1
	// attributeBytes bounds the value of an attribute.
	attributeBytes = 1024
)

// Store is what a journal needs of a store.
type Store interface {
	eventlog.Log
	eventlog.Artifacts
	Capabilities() eventlog.Capabilities
}

// Journal numbers the events of sessions, stores them with the sessions, and announces them when they are durable.
// Its methods may be called from any goroutine.
type Journal struct {
	store Store
	bus   *Bus
	clock func() time.Time
	turns turns // of writers, so that a session's events are announced in order
}

// NewJournal returns a journal that stores events with the time of a clock, and announces them on a bus.
func NewJournal(store Store, bus *Bus, clock func() time.Time) *Journal {
	return &Journal{store: store, bus: bus, clock: clock}
}

// Announce notifies watchers of an event that belongs to no session. It is not stored.
func (j *Journal) Announce(e Event) {
	e.Time = j.clock().UTC().Round(0)
	j.bus.Publish(e)
}

// Entry is stored as a whole or not at all: events of one session, and the artifacts that they report.
type Entry struct {
	SessionID string
	// Of, if not 0, is the incarnation of the session that is meant.
	Of eventlog.Incarnation
	// Events report what happened. Artifacts are stored with them; there may be none.
	Events    []Event
	Artifacts []eventlog.Artifact
	// Durable, if set, is called when all is durable, before the events are announced.
	Durable func()
}

// Put stores an entry as PutArtifacts does. When it has begun, it completes even if ctx ends, so that all that is
// stored is announced, too.
func (j *Journal) Put(ctx context.Context, e Entry) error {
	return j.write(ctx, e, func(ctx context.Context, all []eventlog.Artifact) (stored bool, err error) {
		return true, j.store.PutArtifacts(ctx, e.SessionID, all...)
	})
}

// Append appends a batch to the entry's session, together with the entry, and waits until it is durable, even if ctx
// ends. If the whole batch is a duplicate, nothing is stored or announced.
func (j *Journal) Append(ctx context.Context, e Entry, b eventlog.Batch) (receipts []eventlog.Receipt, err error) {
	err = j.write(ctx, e, func(ctx context.Context, all []eventlog.Artifact) (stored bool, err error) {
		b.Of, b.Artifacts = &e.Of, all
		commit, err := j.store.Append(ctx, e.SessionID, b)
		if err == nil {
			receipts, err = commit.Wait(ctx)
		}
		return slices.ContainsFunc(receipts, func(r eventlog.Receipt) bool { return !r.Duplicate }), err
	})
	return receipts, err
}

// write calls put with all artifacts of an entry, its encoded events included, and announces the events if they were
// stored.
func (j *Journal) write(ctx context.Context, e Entry, put func(context.Context, []eventlog.Artifact) (stored bool, err error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if err := j.turns.enter(ctx, e.SessionID); err != nil {
		return err
	}
	defer j.turns.leave(e.SessionID)
	events, stored, err := j.storeNumbered(ctx, e, put)
	if !stored || err != nil {
		return err
	}
	if e.Durable != nil {
		e.Durable()
	}
	for _, event := range events {
		j.bus.Publish(event)
	}
	return nil
}

// storeNumbered numbers an entry's events and calls put. It tries again with new numbers as long as another process
// takes them first.
func (j *Journal) storeNumbered(ctx context.Context, e Entry, put func(context.Context, []eventlog.Artifact) (stored bool, err error)) (events []Event, stored bool, err error) {
	for tried := uint64(0); ; {
		events, all, err := j.number(ctx, e)
		if err != nil {
			return nil, false, err
		}
		stored, err := put(ctx, all)
		if _, lost := errors.AsType[*eventlog.ConflictError](err); !lost || len(events) == 0 || events[0].Number == tried {
			return events, stored, err
		}
		tried = events[0].Number // if this number is still free, the conflict has another cause
	}
}

// number gives an entry's events their numbers, and returns them, and all artifacts to be stored.
func (j *Journal) number(ctx context.Context, e Entry) (events []Event, all []eventlog.Artifact, err error) {
	if len(e.Events) == 0 {
		return nil, e.Artifacts, nil
	}
	session, err := j.store.Session(ctx, e.SessionID)
	if err != nil {
		return nil, nil, err
	}
	last, err := j.newest(ctx, e.SessionID)
	if err != nil {
		return nil, nil, err
	}
	now := j.clock().UTC().Round(0)
	all = slices.Clone(e.Artifacts)
	for i, event := range e.Events {
		event.SessionID, event.Incarnation = e.SessionID, session.IncarnationName()
		event.Number, event.Time, event.Attributes = last+1+uint64(i), now, bounded(event.Attributes)
		a, err := artifact.Encode(event.key(e.Of), event.stored())
		if err != nil {
			return nil, nil, err
		}
		events, all = append(events, event), append(all, a)
	}
	return events, all, nil
}

// newest returns the number of the newest event of a session; 0 if it has none.
func (j *Journal) newest(ctx context.Context, sessionID string) (uint64, error) {
	// From excludes the artifacts that a fork shares, which are at events of the log.
	for a, err := range j.store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: eventKind, From: beforeFirst, Reverse: true}) {
		if err != nil {
			return 0, err
		}
		return uint64(a.Seq - beforeFirst), nil
	}
	return 0, nil
}

// after returns up to limit events of a session with greater numbers than number.
func (j *Journal) after(ctx context.Context, session eventlog.Session, number uint64, limit int) (page []Event, err error) {
	for a, err := range j.store.Artifacts(ctx, session.ID, eventlog.ArtifactQuery{Kind: eventKind, From: beforeFirst + eventlog.Seq(number) + 1}) {
		if err != nil {
			return nil, err
		}
		e, err := decodeEvent(session, a)
		if err != nil {
			return nil, err
		}
		if page = append(page, e); len(page) == limit {
			break
		}
	}
	return page, nil
}

// timeOf returns when an event of a session happened; zero if the session has none of that number.
func (j *Journal) timeOf(ctx context.Context, session eventlog.Session, number uint64) (time.Time, error) {
	if number == 0 {
		return time.Time{}, nil
	}
	page, err := j.after(ctx, session, number-1, 1)
	if err != nil && !eventlog.IsMissing(err) {
		return time.Time{}, err
	}
	if len(page) == 0 || page[0].Number != number {
		return time.Time{}, nil
	}
	return page[0].Time, nil
}

// session returns a session; zero if it does not exist.
func (j *Journal) session(ctx context.Context, sessionID string) (eventlog.Session, error) {
	session, err := j.store.Session(ctx, sessionID)
	if eventlog.IsMissing(err) {
		return eventlog.Session{}, nil
	}
	return session, err
}

// key returns the artifact key under which the event is stored; the put fails if it is taken.
func (e Event) key(of eventlog.Incarnation) eventlog.Artifact {
	return eventlog.Artifact{Kind: eventKind, Seq: beforeFirst + eventlog.Seq(e.Number), ID: fmt.Sprint(e.Number), Of: of, New: true}
}

func (e Event) stored() *storagev1.LifecycleEvent {
	return &storagev1.LifecycleEvent{
		Version: eventVersion, Type: string(e.Type), TimeSeconds: e.Time.Unix(), TimeNanos: int32(e.Time.Nanosecond()), Attributes: e.Attributes,
	}
}

// decodeEvent decodes the event in an artifact of a session. The error is *artifact.VersionError or
// *eventlog.CorruptError.
func decodeEvent(session eventlog.Session, a eventlog.Artifact) (Event, error) {
	m := &storagev1.LifecycleEvent{}
	if err := artifact.Decode(a, m, eventVersion); err != nil {
		return Event{}, err
	}
	return Event{
		SessionID: session.ID, Incarnation: session.IncarnationName(), Number: uint64(a.Seq - beforeFirst), Type: Type(m.GetType()),
		Time: time.Unix(m.GetTimeSeconds(), int64(m.GetTimeNanos())).UTC(), Attributes: m.GetAttributes(),
	}, nil
}

// bounded returns the attributes in a form that can be stored: short, and UTF-8.
func bounded(attributes map[string]string) map[string]string {
	out := make(map[string]string, len(attributes))
	for k, v := range attributes {
		out[k] = ledger.Cut(strings.ToValidUTF8(v, "\uFFFD"), attributeBytes)
	}
	return out
}
