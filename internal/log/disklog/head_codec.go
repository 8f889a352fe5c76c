package disklog

import (
	"crypto/sha256"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/eventcodec"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

const (
	// completeUpTo is the most open calls with which every head is written complete.
	completeUpTo = 16
	// completeEvery is how many bytes of records may follow a complete head before the next one, so that a head is
	// quickly rebuilt. If the open calls themselves take more, the gap is as large as they are, so that complete
	// heads take at most half of the room.
	completeEvery = 64 << 10

	headField = 15 // of storagev1.Event
	// chainSize is how many bytes the chain adds to a head: tag, length and hash.
	chainSize = 2 + sha256.Size
)

// state is what a log's writer must know of the log up to an event.
type state struct {
	head   eventlog.Head
	bytes  uint64
	update time.Time
	chain  [sha256.Size]byte
	// since is the size of the records after the last complete head.
	since int
}

// completeAfter reports whether the head after a record of this many bytes must be complete.
func (s *state) completeAfter(record int) bool {
	if len(s.head.OpenCalls) <= completeUpTo {
		return true
	}
	due := s.since + record
	if due < completeEvery {
		return false
	}
	calls := 0
	for _, c := range s.head.OpenCalls {
		calls += openCallOverhead + len(c.CallID) + len(c.GroupID)
	}
	return due >= calls
}

// openCallOverhead is about how many bytes an open call takes in addition to its ids.
const openCallOverhead = 12

// appendHead encodes next, the state after an event, as a storagev1.Head without the chain: the complete head, or
// else only the event's changes.
func appendHead(b []byte, next *state, change eventlog.HeadChange, complete bool) []byte {
	b = eventcodec.AppendInt(b, 1, uint64(next.head.Turns))
	b = eventcodec.AppendString(b, 2, next.head.LastGroup)
	b = eventcodec.AppendInt(b, 3, next.bytes)
	b = eventcodec.AppendInt(b, 4, uint64(next.update.Unix()))
	b = eventcodec.AppendInt(b, 5, uint64(next.update.Nanosecond()))

	if complete {
		b = eventcodec.AppendBool(b, 6, true)
		for _, c := range next.head.OpenCalls {
			b = appendOpenCall(b, c, c.Seq)
		}
		return b
	}
	for _, c := range change.Opened {
		b = appendOpenCall(b, c, 0)
	}
	for _, id := range change.Closed {
		b = eventcodec.AppendElement(b, 8, id)
	}
	return b
}

func appendOpenCall(b []byte, c eventlog.OpenCall, seq eventlog.Seq) []byte {
	return eventcodec.AppendMessage(b, 7, func(b []byte) []byte {
		return eventcodec.AppendString(eventcodec.AppendInt(eventcodec.AppendString(b, 1, c.CallID), 2, uint64(seq)), 3, c.GroupID)
	})
}

// recordSize returns the size of an event's record, frame included.
func recordSize(event, head []byte) int {
	size := len(head) + chainSize
	return frameSize + len(event) + protowire.SizeTag(headField) + protowire.SizeVarint(uint64(size)) + size
}

// putRecord fills in an event's record of recordSize bytes, from the results of eventcodec.Append and appendHead, and
// returns the chain after it.
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

// chainOver returns the chain after an event. covered is the event's encoding without the chain, which it hashes.
func chainOver(before [sha256.Size]byte, covered []byte) (after [sha256.Size]byte) {
	h := sha256.New()
	h.Write(before[:])
	h.Write(covered)
	h.Sum(after[:0])
	return after
}

// headIn decodes the head in an event's record, and not the event.
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

// applyHead moves the state past the event at seq as its head says, in place. size is the size of the event's record.
func (s *state) applyHead(seq eventlog.Seq, m *storagev1.Head, size int) {
	s.since += size
	if m.GetComplete() {
		s.head.OpenCalls, s.since = nil, 0
	}
	c := eventlog.HeadChange{Turns: m.GetTurns(), LastGroup: m.GetLastGroup(), Closed: m.GetClosed()}
	for _, o := range m.GetOpened() {
		made := eventlog.Seq(o.GetSeq())
		if made == 0 {
			made = seq
		}
		c.Opened = append(c.Opened, eventlog.OpenCall{CallID: o.GetCallId(), Seq: made, GroupID: o.GetGroupId()})
	}
	s.head.Apply(seq, c)
	s.bytes = m.GetLogBytes()
	s.update = time.Unix(m.GetUpdateSeconds(), int64(m.GetUpdateNanos())).UTC()
	copy(s.chain[:], m.GetChain())
}
