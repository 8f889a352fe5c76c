package assemble

import (
	"context"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/memory"
	"github.com/contextd/contextd/internal/projection"
)

// conversationFactor: what is derived from a text, such as stubs and indexes, takes about as many bytes
// again. projectorBytes: a compiled policy; an index that it gathers from the log is counted separately.
// summaryBytes: a summary without its texts.
const (
	conversationFactor = 2
	projectorBytes     = 64 << 10
	summaryBytes       = 256
)

// held returns how many bytes the session keeps between requests.
func (s *session) held() int {
	n := s.encoded.bytes() + s.last.bytes() + s.projectors.bytes() + s.digests.bytes()
	for i := range s.observed.entries {
		n += s.observed.entries[i].value.Bytes()
	}
	for i := range s.convs.entries {
		n += conversationFactor * s.convs.entries[i].value.Bytes()
	}
	for i := range s.projectors.entries {
		if _, ok := s.projectors.entries[i].value.(projection.Rooted); ok {
			n += int(min(s.logBytes, uint64(s.room)))
		}
	}
	return n + s.quoted.bytes() + summaryBytes*len(s.summaries)
}

// shrink evicts all but what the last request used, if the session holds more than half of the room.
func (s *session) shrink() {
	if s.held() > s.room/2 {
		s.convs.keep(1)
		s.encoded.keep(1)
		s.last.keep(1)
		s.projectors.keep(1)
		s.digests.keep(1)
		s.quoted.keep(1)
		s.observed.keep(1)
		s.ahead.keep(1)
	}
}

// makeRoom evicts all conversations before another is read, if the session holds more than half of the
// room.
func (s *session) makeRoom() {
	if s.held() > s.room/2 {
		s.convs.keep(0)
		s.encoded.keep(0)
		s.observed.keep(0)
		s.ahead.keep(0)
		s.described = nil
	}
}

// How much memory reading a log needs: bytes for each byte of the log, and for each event, which becomes a
// group even if its text is short.
const (
	workFactor = 3
	eventWork  = 512
)

// leastWork is the number of bytes below which no memory need be reserved.
const leastWork = 256 << 10

// reserve takes memory from the work budget to read the log after have up to to, and for the context made
// of it. A request reserves once only: a second reservation could wait for its own first one.
func (s *session) reserve(ctx context.Context, have, to eventlog.Seq) (err error) {
	if s.grant != nil {
		return nil
	}
	read := s.workFor(have, to)
	n := read
	if s.answers {
		n = max(n, s.logBytesOf(to))
	}
	if n < leastWork {
		return nil
	}
	s.computing.End() // nobody may wait for memory while holding a turn of the processor
	if s.grant, err = s.work.Take(ctx, n); err == nil && read >= leastWork && s.expect != nil {
		s.expect(s, read)
	}
	return err
}

// workFor estimates how many bytes of memory it takes to read the events after have up to to.
func (s *session) workFor(have, to eventlog.Seq) uint64 {
	events := to - min(have, to)
	return workFactor*s.logBytesOf(events) + eventWork*uint64(events)
}

// logBytesOf estimates the bytes of the log that a number of events takes, by the average.
func (s *session) logBytesOf(events eventlog.Seq) uint64 {
	return s.logBytes / uint64(max(s.head, 1)) * uint64(events)
}

// handOver reduces the request's reservation to the bytes of its context, and keeps those until it is sent.
func (s *session) handOver(ctx context.Context, messages []Message) {
	bytes := 0
	for i := range messages {
		bytes += len(messages[i].JSON)
	}
	s.grant.Keep(uint64(bytes))
	memory.UntilSent(ctx, s.grant)
	s.grant = nil
}
