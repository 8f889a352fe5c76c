package log

import (
	"context"
	"crypto/sha256"
	"time"
)

// Batch is a list of events, with artifacts, that is appended whole or not at all.
type Batch struct {
	// Events must have an ID and a Body; Seq and Turn are ignored. The store keeps references to what the events
	// contain: the caller must not change it afterwards.
	Events []Event
	// ExpectedHead, if set, must be the log's head before the batch. It does not count if every event of the batch is
	// a duplicate, so that a writer that got no answer can repeat its call.
	ExpectedHead *Seq
	// Of, if set, is the incarnation that the batch is meant for: *NotFoundError if the session is another one, or
	// does not exist. 0 requires that the session does not exist: *ExistsError if it does.
	Of *Incarnation
	// Artifacts are put with the events, by the rules of PutArtifacts: all events and artifacts are stored, or none.
	// If every event of the batch is a duplicate, no artifact is put.
	Artifacts []Artifact
	// Time becomes the session's update time, and its create time if the batch makes the session.
	Time time.Time
}

// Receipt says where an event of a batch is in the log.
type Receipt struct {
	Seq     Seq
	EventID string
	// Duplicate is set if the log already has the same event, or an earlier place of the batch does. Seq is then that
	// event's.
	Duplicate bool
	Tokens    TokenCounts
	// Turn is the event's turn; 0 for a duplicate.
	Turn uint32
}

// Commit is an admitted batch: its events have their seqs, but may not be durable yet.
type Commit interface {
	// Wait returns when the batch is durable, with one receipt for each event, in the batch's order. After an error
	// the batch may be stored, whole, or not at all. Wait may be called once, from any goroutine. If ctx ends, the
	// wait ends; the append goes on.
	Wait(ctx context.Context) ([]Receipt, error)
}

// Known describes an event that the log has under an event_id.
type Known struct {
	Seq    Seq
	Digest [sha256.Size]byte
	Tokens TokenCounts
}

// PreparedBatch is a batch that has passed all checks that need no log, so that a store makes them before it takes a
// lock.
type PreparedBatch struct {
	events  []Event
	digests [][sha256.Size]byte
	expect  *Seq
}

// Prepare makes the checks of a batch that need no log. It converts times to UTC.
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

// Events returns the batch's events as they will be stored, except that Seq and Turn are not set.
func (p PreparedBatch) Events() []Event { return p.events }

// Admission is the outcome of admitting a batch to a log.
type Admission struct {
	// Fresh are the events that the log does not have yet, in order.
	Fresh []FreshEvent
	// Receipts has one entry per event of the batch, in order.
	Receipts []Receipt
	// Head is the log's head after the batch.
	Head Head
	// Newest is the greatest Seq among the receipts: when that event is durable, so is every event of the batch.
	Newest Seq
}

// FreshEvent is an admitted event that the log did not have.
type FreshEvent struct {
	Event  Event
	Digest [sha256.Size]byte
	// Index is the event's place in the batch.
	Index int
	// Change is the change that the event makes to the log's head.
	Change HeadChange
}

// Admit gives the batch its place after h. lookup returns what the log knows of the event_id at an index of the
// batch; it must also find events that are admitted but not durable yet. Its error is returned as it is.
//
// The checks are, in this order:
//   - an event_id that is known with other content is an *EventConflictError;
//   - a head that is not the expected one is a *HeadMismatchError, unless every event is a duplicate;
//   - a tool call or result that does not fit the log is an *InvalidError (see Head.Admit).
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
