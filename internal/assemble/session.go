package assemble

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"

	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/fair"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/memory"
	"github.com/contextd/contextd/internal/pointers"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
)

// session is what is kept of a session between requests: nothing that the log
// and the records would not give again. It belongs to whoever acquired it.
type session struct {
	id   string
	turn chan struct{} // holds one token while nobody uses the session

	// What pool.mu guards: the sessions of the same engine, the place among the recent ones,
	// how many callers use the session or wait for it, whether what it holds, or the list of
	// summaries, must be forgotten first, and its share of pool.bytes.
	home         map[string]*session
	place        *list.Element
	users        int
	stale        bool
	newSummaries bool
	bytes        int

	// room is how many bytes all sessions may hold, and work what reading a log takes from;
	// grant is what the request that has the turn took.
	room  int
	work  *memory.Budget
	grant *memory.Grant
	// computing is the processor's turn of the request that has the session.
	computing fair.Turn
	// expect makes room for what is read; nil where the session is not one of those that
	// stay. answers is set while a context is made,
	// which is as large as the log at most.
	expect  func(s *session, bytes uint64)
	answers bool

	// of is the incarnation that what follows is of, and pinned the one that whoever
	// has the session works on; 0 before it looked. head and logBytes are the log's as
	// it was last seen.
	of, pinned eventlog.Incarnation
	head       eventlog.Seq
	logBytes   uint64
	// indexed says that all records and calls are found by what is kept next to them.
	indexed bool

	convs   recent[*reduce.Conversation] // by tokenizer, and how the log is read
	encoded recent[*layout]              // by format and recall tool
	last    recent[lastProjection]       // by stream
	// digests are those that are stored next to the log, zero where none is, by fingerprint.
	digests recent[reduce.Written]
	// checkpoints are the sums of what is stored of what digests replace, by fingerprint.
	checkpoints recent[[32]byte]
	// whole has whoever has the session read logs from their first event on.
	whole   bool
	report  *lastReport
	layouts int // how many there were
	// described are the blocks of the pointers of the last answer.
	described pointers.Described
	// summaries are all there are, oldest first; nil if they were not read.
	summaries []summarize.Summary
	// projectors are the projection policies in use, by recall tool and the JSON of their
	// options.
	projectors recent[projection.Policy]
	// observed is what was observed of what was shown last, and ahead what was found ahead of it, by
	// fingerprint.
	observed recent[*records.Observation]
	ahead    recent[ahead]
	// known is what the session's watchers know of its reminders; nil if it was not read.
	known *decide.Known
}

// lastProjection is what was sent last in a stream of a session.
type lastProjection struct {
	record   records.Projection
	messages []Message
	// layout is that of the messages; the first body of them, which take so many tokens and
	// bytes, are in whatever grows from it.
	layout, body int
	tokens       uint64
	bytes        int
}

// lastReport serves estimates for appends.
type lastReport struct {
	record records.Projection
	raw    uint64
}

// A session keeps what it was used with last: two pairs of a tokenizer and a way to
// read the log are one agent that changes its model, eight streams as many policies.
const (
	maxConversations = 2
	maxFormats       = 2
	maxStreams       = 8
	maxProjectors    = 4
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

func (s *session) reset() {
	s.convs = recent[*reduce.Conversation]{limit: maxConversations}
	s.encoded = recent[*layout]{limit: maxFormats}
	s.last = recent[lastProjection]{limit: maxStreams}
	s.projectors = recent[projection.Policy]{limit: maxProjectors}
	s.digests = recent[reduce.Written]{limit: maxStreams}
	s.checkpoints = recent[[32]byte]{limit: maxStreams}
	s.observed = recent[*records.Observation]{limit: maxStreams}
	s.ahead = recent[ahead]{limit: maxStreams}
	s.report = nil
	s.described = nil
	s.summaries = nil
	s.known = nil
	s.indexed = false
	s.head = 0
	s.of = 0
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

// projector is the policy of the options: compiled, and with what it gathered from
// the session so far, the texts included that name a recall tool.
func (s *session) projector(o projection.Options, by reduce.Recall) (projection.Policy, error) {
	options, err := json.Marshal(o.Lasting())
	if err != nil {
		return nil, err
	}
	key := string(by) + string(options)
	if p, ok := s.projectors.get(key); ok {
		if r, ok := p.(projection.Rooted); ok {
			return r.WithRoots(o), nil
		}
		return p, nil
	}
	p, err := projection.New(o)
	if err != nil {
		return nil, err
	}
	s.projectors.put(key, p, projectorBytes)
	return p, nil
}

// look returns the session's current state, and forgets everything about another that had
// its id before. For whoever has the session, the first look decides which one it works on:
// a later one is a *eventlog.NotFoundError where that one is gone. So what was read between
// two looks is of one session, and what is computed after them is of no mixture.
func (s *session) look(ctx context.Context, store eventlog.Reader) (eventlog.Session, error) {
	info, err := store.Session(ctx, s.id)
	var gone *eventlog.NotFoundError
	if errors.As(err, &gone) || err == nil && info.Incarnation != s.of {
		s.reset()
	}
	if err != nil {
		return info, err
	}
	if s.of = info.Incarnation; s.pinned == 0 {
		s.pinned = s.of
	}
	if s.pinned != s.of {
		return info, &eventlog.NotFoundError{Kind: "session", Name: s.id}
	}
	return info, nil
}

// index has records and calls found by what is kept next to them. It need be asked once for
// what is held of a session.
func (s *session) index(ctx context.Context, store eventlog.Artifacts) error {
	if s.indexed {
		return nil
	}
	err := records.Index(ctx, store, s.id, s.of)
	s.indexed = err == nil
	return err
}

// remember keeps what was recorded, for the next comparison and for estimates. What
// is in s.last is the newest record of its kind: nothing can come after the head,
// or after what was the newest before.
func (s *session) remember(r records.Projection, e encoding, conv *reduce.Conversation) {
	if old, ok := s.last.get(r.Stream()); r.AsOf == s.head || ok && old.record.AsOf <= r.AsOf {
		now := old.after(r, e)
		s.last.put(r.Stream(), now, now.bytes+recordBytes(r))
	}
	s.report = &lastReport{r, conv.Tokens()}
}

// messageOverhead is what a message takes beside its bytes.
const messageOverhead = 256

// after is what is kept of the messages of a projection that is recorded after this one: only what
// later ones are compared with, so that they keep no conversation in memory.
func (p lastProjection) after(r records.Projection, e encoding) lastProjection {
	now := lastProjection{record: r, layout: e.layout, body: e.body}
	if e.layout == p.layout && p.body <= e.body && p.body > 0 {
		now.messages, now.tokens, now.bytes = p.messages[:p.body], p.tokens, p.bytes
	}
	for i := len(now.messages); i < len(e.messages); i++ {
		m := &e.messages[i]
		now.messages = append(now.messages, Message{JSON: m.JSON, Passing: m.Passing})
		if i < e.body {
			now.tokens += m.Tokens
			now.bytes += len(m.JSON) + messageOverhead
		}
	}
	return now
}

// recordBytes is what of a record may be large.
func recordBytes(r records.Projection) int {
	n := 64*(len(r.Pointers)+len(r.Steps)) + len(r.Projection.Summary) + len(r.Projection.Expression)
	for _, root := range r.RootsConsulted {
		n += len(root)
	}
	return n
}
