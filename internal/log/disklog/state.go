package disklog

import (
	"slices"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// newestState returns the state of a session to which nobody appends. it is an iterator to reuse, with any bounds;
// nil opens a new one.
func (s *Store) newestState(r *record, it *pebble.Iterator) (state, error) {
	own := r.own()
	at, found, err := s.stateIn(own, unbounded, it)
	if err != nil {
		return state{}, err
	}
	if !found {
		if at, err = s.stateAt(r.links[:len(r.links)-1], own.base); err != nil {
			return state{}, err
		}
		// The update time of an empty fork is its own creation, not its parent's past.
		at.update = r.info.CreateTime
		at.since = 0
	}
	return at, nil
}

// stateAt returns the state after an event of the links; at 0, that of an empty log.
func (s *Store) stateAt(links []link, seq eventlog.Seq) (state, error) {
	if seq == 0 {
		return state{}, nil
	}
	for _, l := range slices.Backward(links) {
		if seq <= l.base || seq > l.upTo {
			continue
		}
		at, found, err := s.stateIn(l, seq, nil)
		if err != nil {
			return state{}, err
		}
		if found && at.head.Seq == seq {
			return at, nil
		}
		break
	}
	return state{}, &eventlog.CorruptError{What: "a session's log", Reason: "an event that it should hold is missing"}
}

// stateIn returns the state after the newest event of a segment at seq or before. found is false if there is none. it
// is as for newestState.
func (s *Store) stateIn(l link, seq eventlog.Seq, it *pebble.Iterator) (at state, found bool, err error) {
	lower := kindPrefix(l.segment, keyEvent)
	upper := prefixEnd(lower)
	if seq < unbounded {
		upper = eventKey(l.segment, seq+1)
	}
	if it != nil {
		it.SetBounds(lower, upper)
	} else {
		if it, err = s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper}); err != nil {
			return state{}, false, s.fail("events", err)
		}
		defer it.Close()
	}

	// Go back to the last complete head, then forward again.
	type storedHead struct {
		*storagev1.Head
		seq  eventlog.Seq
		size int
	}
	var heads []storedHead
	for ok := it.Last(); ok; ok = it.Prev() {
		value, err := s.valueOf(it)
		if err != nil {
			return state{}, false, err
		}
		m, err := headIn(it.Key(), value)
		if err != nil {
			return state{}, false, err
		}
		heads = append(heads, storedHead{m, keySeq(it.Key()), len(value)})
		if m.GetComplete() {
			break
		}
	}
	if err := it.Error(); err != nil {
		return state{}, false, s.fail("events", err)
	}
	if len(heads) == 0 {
		return state{}, false, nil
	}
	if !heads[len(heads)-1].GetComplete() {
		return state{}, false, &eventlog.CorruptError{What: describeKey(eventKey(l.segment, heads[0].seq)), Reason: "no complete head precedes it"}
	}
	for _, h := range slices.Backward(heads) {
		at.applyHead(h.seq, h.Head, h.size)
	}
	return at, true, nil
}
