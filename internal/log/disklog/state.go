package disklog

import (
	"slices"

	"github.com/cockroachdb/pebble/v2"
	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// newestState is the state of a session that nobody is appending to.
func (s *Store) newestState(r *record) (state, error) {
	own := r.own()
	at, found, err := s.stateIn(own, unbounded)
	if err != nil {
		return state{}, err
	}
	if !found {
		if at, err = s.stateAt(r.links[:len(r.links)-1], own.base); err != nil {
			return state{}, err
		}
		// The session's life begins with its creation, not with its past.
		at.update = r.info.CreateTime
		at.partial = 0
	}
	return at, nil
}

// stateAt is the state behind an event of the links; that of an empty log at 0.
func (s *Store) stateAt(links []link, seq eventlog.Seq) (state, error) {
	if seq == 0 {
		return state{}, nil
	}
	for _, l := range slices.Backward(links) {
		if seq <= l.base || seq > l.upTo {
			continue
		}
		at, found, err := s.stateIn(l, seq)
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

// stateIn is the state behind the newest event of a segment that is not after
// seq. found is false if there is none.
func (s *Store) stateIn(l link, seq eventlog.Seq) (at state, found bool, err error) {
	lower := kindPrefix(l.segment, keyEvent)
	upper := prefixEnd(lower)
	if seq < unbounded {
		upper = eventKey(l.segment, seq+1)
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return state{}, false, s.fail("events", err)
	}
	defer it.Close()

	// Back to the last complete head, then forward again.
	var partials []*storagev1.Head
	var newest eventlog.Seq
	for ok := it.Last(); ok; ok = it.Prev() {
		m, err := s.headUnder(it)
		if err != nil {
			return state{}, false, err
		}
		if newest == 0 {
			newest = keySeq(it.Key())
		}
		partials = append(partials, m)
		if m.GetComplete() {
			break
		}
		if len(partials) > completeEvery {
			return state{}, false, &eventlog.CorruptError{What: describeKey(it.Key()), Reason: "too many partial heads precede it"}
		}
	}
	if err := it.Error(); err != nil {
		return state{}, false, s.fail("events", err)
	}
	if len(partials) == 0 {
		return state{}, false, nil
	}
	if !partials[len(partials)-1].GetComplete() {
		return state{}, false, &eventlog.CorruptError{What: describeKey(eventKey(l.segment, newest)), Reason: "no complete head precedes it"}
	}
	var open []eventlog.OpenCall
	for i, m := range slices.Backward(partials) {
		open = applyHead(open, newest-eventlog.Seq(i), m)
	}
	return stateOf(newest, partials[0], open, len(partials)-1), true, nil
}

// headUnder reads the head of the event that an iterator stands on.
func (s *Store) headUnder(it *pebble.Iterator) (*storagev1.Head, error) {
	value, err := it.ValueAndErr()
	if err != nil {
		return nil, s.fail(describeKey(it.Key()), err)
	}
	return headIn(it.Key(), value)
}
