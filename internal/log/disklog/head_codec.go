package disklog

import (
	"crypto/sha256"
	"slices"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

const (
	// completeUpTo is how many open calls are written in full with every head.
	completeUpTo = 16
	// completeEvery is how many heads in a row may say only what changed.
	completeEvery = 32
)

// state is all that a segment's writer must know of the log up to an event.
type state struct {
	head   eventlog.Head
	bytes  uint64
	update time.Time
	chain  [sha256.Size]byte
	// partial counts the heads since the last complete one.
	partial int
}

// headRecord describes next, the state behind an event, for whoever knows before.
// first is whether it is the segment's first head.
func headRecord(before eventlog.Head, next *state, eventIDHash []byte, first bool) *storagev1.Head {
	m := &storagev1.Head{
		Turns:         next.head.Turns,
		LastGroup:     next.head.LastGroup,
		LogBytes:      next.bytes,
		UpdateSeconds: next.update.Unix(),
		UpdateNanos:   int32(next.update.Nanosecond()),
		Chain:         next.chain[:],
		EventIdHash:   eventIDHash,
	}
	open := next.head.OpenCalls
	m.Complete = first || len(open) <= completeUpTo || next.partial+1 >= completeEvery
	if m.Complete {
		next.partial = 0
		for _, c := range open {
			m.Opened = append(m.Opened, &storagev1.OpenCall{CallId: c.CallID, Seq: uint64(c.Seq), GroupId: c.GroupID})
		}
		return m
	}
	next.partial++
	at := 0
	for _, c := range before.OpenCalls {
		if at < len(open) && open[at] == c {
			at++
			continue
		}
		m.Closed = append(m.Closed, c.CallID)
	}
	for _, c := range open[at:] {
		m.Opened = append(m.Opened, &storagev1.OpenCall{CallId: c.CallID, GroupId: c.GroupID})
	}
	return m
}

// applyHead is the inverse of headRecord: the open calls behind seq, from those
// before it.
func applyHead(before []eventlog.OpenCall, seq eventlog.Seq, m *storagev1.Head) []eventlog.OpenCall {
	if m.GetComplete() {
		before = nil
	}
	open := make([]eventlog.OpenCall, 0, len(before)+len(m.GetOpened()))
	for _, c := range before {
		if !slices.Contains(m.GetClosed(), c.CallID) {
			open = append(open, c)
		}
	}
	for _, c := range m.GetOpened() {
		made := eventlog.Seq(c.GetSeq())
		if made == 0 {
			made = seq
		}
		open = append(open, eventlog.OpenCall{CallID: c.GetCallId(), Seq: made, GroupID: c.GetGroupId()})
	}
	return open
}

// stateOf is the state that a head record describes, given the open calls behind
// it and how many partial heads led there.
func stateOf(seq eventlog.Seq, m *storagev1.Head, open []eventlog.OpenCall, partial int) state {
	s := state{
		head:    eventlog.Head{Seq: seq, Turns: m.GetTurns(), LastGroup: m.GetLastGroup(), OpenCalls: open},
		bytes:   m.GetLogBytes(),
		update:  time.Unix(m.GetUpdateSeconds(), int64(m.GetUpdateNanos())).UTC(),
		partial: partial,
	}
	copy(s.chain[:], m.GetChain())
	return s
}

// decodeHead reads a head record.
func decodeHead(key, value []byte) (*storagev1.Head, error) {
	var m storagev1.Head
	if err := decode(key, keyHead, value, &m); err != nil {
		return nil, err
	}
	if len(m.GetChain()) != sha256.Size || len(m.GetEventIdHash()) != eventIDHashSize {
		return nil, &eventlog.CorruptError{What: describeKey(key), Reason: "a hash has the wrong size"}
	}
	return &m, nil
}
