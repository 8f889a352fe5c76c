package disklog

import (
	"crypto/sha256"
	"slices"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

const (
	// completeUpTo is how many open calls are written in full with every head.
	completeUpTo = 16
	// completeEvery is how many heads in a row may say only what changed.
	completeEvery = 32
	// completeFrom is the size from which an event's head is complete: what leads
	// to a head must be quick to read.
	completeFrom = 64 << 10

	headField = 15 // of storagev1.Event
	// chainSize is what the chain adds to a head: tag, length and hash.
	chainSize = 2 + sha256.Size
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

// appendHead encodes next, the state behind an event, for whoever knows before,
// as a storagev1.Head without the chain. complete is whether it must tell all.
func appendHead(b []byte, before eventlog.Head, next *state, complete bool) []byte {
	b = appendInt(b, 1, uint64(next.head.Turns))
	b = appendString(b, 2, next.head.LastGroup)
	b = appendInt(b, 3, next.bytes)
	b = appendInt(b, 4, uint64(next.update.Unix()))
	b = appendInt(b, 5, uint64(next.update.Nanosecond()))

	open := next.head.OpenCalls
	if complete || len(open) <= completeUpTo || next.partial+1 >= completeEvery {
		next.partial = 0
		b = appendBool(b, 6, true)
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
		b = appendElement(b, 8, id)
	}
	return b
}

func appendOpenCall(b []byte, c eventlog.OpenCall, seq eventlog.Seq) []byte {
	return appendMessage(b, 7, func(b []byte) []byte {
		return appendString(appendInt(appendString(b, 1, c.CallID), 2, uint64(seq)), 3, c.GroupID)
	})
}

// recordSize is the size of an event's record, frame included.
func recordSize(event, head []byte) int {
	size := len(head) + chainSize
	return frameSize + len(event) + protowire.SizeTag(headField) + protowire.SizeVarint(uint64(size)) + size
}

// putRecord fills in an event's record of recordSize bytes, from what appendEvent
// and appendHead made, and returns the chain behind it.
func putRecord(key, record, event, head []byte, before [sha256.Size]byte) [sha256.Size]byte {
	b := record[:frameSize]
	b = append(b, event...)
	b = protowire.AppendTag(b, headField, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(head)+chainSize))
	b = append(b, head...)
	b = protowire.AppendVarint(protowire.AppendTag(b, 15, protowire.BytesType), sha256.Size)
	chain := chainOver(before, b[frameSize:])
	b = append(b, chain[:]...)
	putFrame(key, keyEvent, b)
	return chain
}

// chainOver is the chain behind an event whose encoding is covered but for the
// chain itself.
func chainOver(before [sha256.Size]byte, covered []byte) (after [sha256.Size]byte) {
	h := sha256.New()
	h.Write(before[:])
	h.Write(covered)
	h.Sum(after[:0])
	return after
}

// headIn reads the head out of an event's record and leaves the event alone.
func headIn(key, value []byte) (*storagev1.Head, error) {
	body, err := unframe(key, keyEvent, value)
	if err != nil {
		return nil, err
	}
	for len(body) > 0 {
		field, kind, n := protowire.ConsumeTag(body)
		if n < 0 {
			break
		}
		size := protowire.ConsumeFieldValue(field, kind, body[n:])
		if size < 0 {
			break
		}
		if field != headField || kind != protowire.BytesType {
			body = body[n+size:]
			continue
		}
		encoded, _ := protowire.ConsumeBytes(body[n:])
		var m storagev1.Head
		if err := proto.Unmarshal(encoded, &m); err != nil {
			return nil, &eventlog.CorruptError{What: describeKey(key), Reason: err.Error()}
		}
		return &m, checkHead(key, &m)
	}
	return nil, checkHead(key, nil)
}

func checkHead(key []byte, m *storagev1.Head) error {
	if len(m.GetChain()) != sha256.Size {
		return &eventlog.CorruptError{What: describeKey(key), Reason: "it has no head with a chain"}
	}
	return nil
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

// stateOf is the state that a head describes, given the open calls behind it and
// how many partial heads led there.
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
