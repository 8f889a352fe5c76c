package log

import (
	"context"
	"crypto/sha256"
	"time"
)

// Batch is appended whole or not at all.
type Batch struct {
	// Events must have an ID and a Body; Seq and Turn are ignored. The store
	// keeps references to what the events hold: the caller must not change it
	// afterwards.
	Events []Event
	// ExpectedHead, if set, must be the log's head before the batch. A batch of
	// which every event is a duplicate succeeds whatever the head is, so that a
	// writer can repeat a call whose answer it lost.
	ExpectedHead *Seq
	// Of, if set, is the incarnation that the batch is meant for: *NotFoundError if the id has another by
	// now, or none. Of 0 demands that the session does not exist yet: *ExistsError if there is one.
	Of *Incarnation
	// Artifacts are put with the events, by the rules of PutArtifacts: all or none of both
	// are stored. A batch of which every event is a duplicate puts none.
	Artifacts []Artifact
	// Time becomes the session's update time, and its create time if this batch
	// makes it.
	Time time.Time
}

// Receipt says where an event of a batch is in the log.
type Receipt struct {
	Seq     Seq
	EventID string
	// Duplicate is set when the log held the same event already; Seq is then the
	// place of the first one.
	Duplicate bool
	Tokens    TokenCounts
	// Turn is the event's; 0 for a duplicate.
	Turn uint32
}

// Commit is an append that has its place in the log but may not be durable yet.
type Commit interface {
	// Wait returns once the batch is durable, with one receipt per event in the
	// batch's order. After an error of Wait the batch is there whole or not at
	// all. Wait may be called once, from any goroutine. A cancelled context ends
	// the wait, not the append.
	Wait(ctx context.Context) ([]Receipt, error)
}

// Known is what a log remembers of an event_id that it holds.
type Known struct {
	Seq    Seq
	Digest [sha256.Size]byte
	Tokens TokenCounts
}

// PreparedBatch is a batch with everything worked out that needs no log, so that
// a store does it before it takes a lock.
type PreparedBatch struct {
	events  []Event
	digests [][sha256.Size]byte
	expect  *Seq
}

// Prepare checks a batch as far as it can be checked without a log. Times are
// brought to UTC.
func Prepare(b Batch) (PreparedBatch, error) {
	if len(b.Events) == 0 {
		return PreparedBatch{}, &InvalidError{"events", "must not be empty"}
	}
	p := PreparedBatch{
		events:  make([]Event, len(b.Events)),
		digests: make([][sha256.Size]byte, len(b.Events)),
		expect:  b.ExpectedHead,
	}
	for i, e := range b.Events {
		if e.ID == "" {
			return PreparedBatch{}, (&InvalidError{"event_id", "must not be empty"}).in("events[%d]", i)
		}
		if err := validateEvent(e); err != nil {
			return PreparedBatch{}, err.in("events[%d]", i)
		}
		e.Time = e.Time.UTC().Round(0)
		p.events[i] = e
		p.digests[i] = Digest(e)
	}
	return p, nil
}

// Events are the batch's events as they will be stored, Seq and Turn aside.
func (p PreparedBatch) Events() []Event { return p.events }

// Admission is the outcome of admitting a batch to a log.
type Admission struct {
	// Fresh are the events that the log does not hold yet, in order.
	Fresh []FreshEvent
	// Receipts has one entry per event of the batch, in order.
	Receipts []Receipt
	// Head is the log's head after the batch.
	Head Head
	// Newest is the greatest Seq among the receipts: once it is durable, so is
	// every event of the batch.
	Newest Seq
}

// FreshEvent is an event that has its place in the log.
type FreshEvent struct {
	Event  Event
	Digest [sha256.Size]byte
	// Index is the event's place in the batch.
	Index int
	// Change is what it changes of the log's head.
	Change HeadChange
}

// Admit finds the batch's place after h. lookup says what the log, admitted
// events that are not durable yet included, knows of the event_id at an index of
// the batch; its error is returned as it is.
//
// The checks come in this order, after those of Prepare: an event_id that is
// known with other content is an *EventConflictError; a head other than the
// expected one a *HeadMismatchError, unless every event is a duplicate; then each
// tool call and result must fit the log.
func (p PreparedBatch) Admit(h Head, lookup func(index int) (Known, bool, error)) (Admission, error) {
	a := Admission{Receipts: make([]Receipt, len(p.events))}
	var firstAt map[string]int
	if len(p.events) > 1 {
		firstAt = make(map[string]int, len(p.events))
	}
	fresh := make([]int, 0, len(p.events))
	for i, e := range p.events {
		known, ok, err := lookup(i)
		if err != nil {
			return Admission{}, err
		}
		first, repeated := firstAt[e.ID]
		switch {
		case ok && known.Digest != p.digests[i]:
			return Admission{}, &EventConflictError{EventID: e.ID, Index: i, Seq: known.Seq}
		case ok:
			a.Receipts[i] = Receipt{Seq: known.Seq, EventID: e.ID, Duplicate: true, Tokens: known.Tokens}
			a.Newest = max(a.Newest, known.Seq)
		case repeated && p.digests[first] != p.digests[i]:
			return Admission{}, &EventConflictError{EventID: e.ID, Index: i}
		case repeated:
			// The receipt is filled in when the first one has its seq.
		default:
			if firstAt != nil {
				firstAt[e.ID] = i
			}
			fresh = append(fresh, i)
		}
	}
	if a.Head = h; len(fresh) == 0 {
		return a, nil
	}
	if p.expect != nil && *p.expect != h.Seq {
		return Admission{}, &HeadMismatchError{Expected: *p.expect, Actual: h.Seq}
	}
	a.Fresh = make([]FreshEvent, 0, len(fresh))
	a.Head = h.Clone()
	for _, i := range fresh {
		e, change, err := a.Head.place(p.events[i])
		if err != nil {
			return Admission{}, err.in("events[%d]", i)
		}
		a.Fresh = append(a.Fresh, FreshEvent{Event: e, Digest: p.digests[i], Index: i, Change: change})
		a.Receipts[i] = Receipt{Seq: e.Seq, EventID: e.ID, Tokens: e.Tokens, Turn: e.Turn}
	}
	a.Newest = max(a.Newest, a.Head.Seq)
	for i, e := range p.events {
		if a.Receipts[i].Seq == 0 {
			r := a.Receipts[firstAt[e.ID]]
			r.Duplicate, r.Turn = true, 0
			a.Receipts[i] = r
		}
	}
	return a, nil
}
