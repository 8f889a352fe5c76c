package assemble

import (
	"context"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/memory"
	"github.com/contextd/contextd/internal/projection"
)

// What is derived from a text, such as stubs and indexes, takes about as much again;
// a policy holds its program and, where it gathers from the log, an index.
const (
	conversationFactor = 2
	projectorBytes     = 64 << 10
)

// held is how many bytes the session keeps between requests.
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
	for i := range s.summaries {
		n += len(s.summaries[i].Text) + len(s.summaries[i].Ledger) + len(s.summaries[i].Index)
	}
	return n
}

// shrink keeps only what the last request used where the session holds more than its
// share.
func (s *session) shrink() {
	if s.held() > s.room/2 {
		s.convs.keep(1)
		s.encoded.keep(1)
		s.last.keep(1)
		s.projectors.keep(1)
		s.digests.keep(1)
		s.observed.keep(1)
		s.ahead.keep(1)
	}
}

// makeRoom releases all conversations, before another is read, where they take more
// than the session's share.
func (s *session) makeRoom() {
	if s.held() > s.room/2 {
		s.convs.keep(0)
		s.encoded.keep(0)
		s.observed.keep(0)
		s.ahead.keep(0)
		s.described = nil
	}
}

// How many bytes are at work for each byte of a log that is read, and for each event: the group
// that it is, however little it says.
const (
	workFactor = 3
	eventWork  = 512
)

// leastWork is what nobody need wait for.
const leastWork = 256 << 10

// reserve takes memory for reading the log after have, and for a context that is made of
// it, unless the request has some: it must not wait for itself.
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
	s.computing.End() // a turn of the processor waits for nothing
	if s.grant, err = s.work.Take(ctx, n); err == nil && read >= leastWork && s.expect != nil {
		s.expect(s, read)
	}
	return err
}

// workFor is about how many bytes reading the log after have takes.
func (s *session) workFor(have, to eventlog.Seq) uint64 {
	events := to - min(have, to)
	return workFactor*s.logBytesOf(events) + eventWork*uint64(events)
}

// logBytesOf is about how many bytes of the log so many events are.
func (s *session) logBytesOf(events eventlog.Seq) uint64 {
	return s.logBytes / uint64(max(s.head, 1)) * uint64(events)
}

// handOver keeps of what the request took what its context takes until it is sent.
func (s *session) handOver(ctx context.Context, out *Context) {
	bytes := 0
	for i := range out.Messages {
		bytes += len(out.Messages[i].JSON)
	}
	s.grant.Keep(uint64(bytes))
	memory.UntilSent(ctx, s.grant)
	s.grant = nil
}
