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

// appendHead describes next, the state behind an event, for whoever knows before,
// as a storagev1.Head. first is whether it is the segment's first head.
func appendHead(b []byte, before eventlog.Head, next *state, eventIDHash []byte, first bool) []byte {
	b = appendInt(b, 1, uint64(next.head.Turns))
	b = appendString(b, 2, next.head.LastGroup)
	b = appendInt(b, 3, next.bytes)
	b = appendInt(b, 4, uint64(next.update.Unix()))
	b = appendInt(b, 5, uint64(next.update.Nanosecond()))
	b = appendBytes(b, 6, next.chain[:])
	b = appendBytes(b, 7, eventIDHash)

	open := next.head.OpenCalls
	if first || len(open) <= completeUpTo || next.partial+1 >= completeEvery {
		next.partial = 0
		b = appendBool(b, 8, true)
		for _, c := range open {
			b = appendOpenCall(b, c, c.Seq)
		}
		return b
	}
	next.partial++
	// Calls close anywhere in the list; new ones come last.
	kept := 0
	var closed []string
	for _, c := range before.OpenCalls {
		if kept < len(open) && open[kept] == c {
			kept++
			continue
		}
		closed = append(closed, c.CallID)
	}
	for _, c := range open[kept:] {
		b = appendOpenCall(b, c, 0)
	}
	for _, id := range closed {
		b = appendElement(b, 10, id)
	}
	return b
}

func appendOpenCall(b []byte, c eventlog.OpenCall, seq eventlog.Seq) []byte {
	return appendMessage(b, 9, func(b []byte) []byte {
		return appendString(appendInt(appendString(b, 1, c.CallID), 2, uint64(seq)), 3, c.GroupID)
	})
}

// applyHead is the inverse of appendHead: the open calls behind seq, from those
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
