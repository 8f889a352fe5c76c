package assemble

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/summarize"
)

// session is what is kept of a session between requests: nothing that the log
// and the records would not give again. It belongs to whoever acquired it.
type session struct {
	id   string
	turn chan struct{} // holds one token while nobody uses the session

	// What sessions.mu guards: the place among the recent ones, how many callers use
	// the session or wait for it, whether what it holds, or the list of summaries, must
	// be forgotten first, and its share of sessions.chars.
	place      *list.Element
	users      int
	stale      bool
	summarized bool
	chars      int

	// of is the incarnation that what follows is of, and pinned the one that whoever
	// has the session works on; 0 before it looked. head is the log's as it was last
	// seen.
	of, pinned eventlog.Incarnation
	head       eventlog.Seq

	convs   map[string]*reduce.Conversation           // by tokenizer, and how the log is read
	encoded map[string]map[*reduce.Group]encodedGroup // by format
	last    map[string]lastProjection                 // by stream
	report  *lastReport
	// described are the blocks behind the pointers of the last answer.
	described describedBlocks
	// summaries are all there are, oldest first; nil if they were not read.
	summaries []summarize.Summary
	// projectors are the projection policies in use, by the JSON of their options.
	projectors map[string]projection.Policy
	// turns is how many the log had at the furthest recorded assembly.
	turns uint32
}

// lastProjection is what was sent last in a stream of a session.
type lastProjection struct {
	record   projection.Record
	messages []Message
}

// lastReport serves estimates for appends.
type lastReport struct {
	record projection.Record
	raw    uint64
}

// encodedGroup keeps the fragments of a group under its edits.
type encodedGroup struct {
	edits     []reduce.Edit
	dropped   *reduce.Dropped
	fragments []render.Fragment
}

// stream names what has a prefix of its own in a provider's cache: the decisions of a
// fingerprint in one format.
func stream(r projection.Record) string { return r.Fingerprint + "/" + r.Budget.Format }

// grown is how much more text the session holds than is counted in its chars.
// Only who has the session's turn changes either.
func (s *session) grown() int {
	chars := 0
	for _, conv := range s.convs {
		chars += conv.Chars()
	}
	return chars - s.chars
}

func (s *session) reset() {
	s.convs = map[string]*reduce.Conversation{}
	s.encoded = map[string]map[*reduce.Group]encodedGroup{}
	s.last = map[string]lastProjection{}
	s.report = nil
	s.described = nil
	s.summaries = nil
	s.projectors = map[string]projection.Policy{}
	s.turns = 0
	s.head = 0
	s.of = 0
}

// maxProjectors bounds how many policies a session keeps at hand.
const maxProjectors = 8

// projector is the policy of the options: compiled, and with what it gathered from
// the session so far.
func (s *session) projector(o projection.Options) (projection.Policy, error) {
	key, err := json.Marshal(o.Lasting())
	if err != nil {
		return nil, err
	}
	if p, ok := s.projectors[string(key)]; ok {
		if r, ok := p.(projection.Rooted); ok {
			return r.WithRoots(o), nil
		}
		return p, nil
	}
	p, err := projection.New(o)
	if err != nil {
		return nil, err
	}
	if len(s.projectors) >= maxProjectors {
		clear(s.projectors)
	}
	s.projectors[string(key)] = p
	return p, nil
}

// conversation returns the log up to asOf, or to its head, as groups. The
// session's own conversation only grows: an earlier asOf gets one of its own.
func (s *session) conversation(ctx context.Context, store eventlog.Store, gauge budget.Accountant, asOf *eventlog.Seq) (*reduce.Conversation, error) {
	to, err := s.upTo(ctx, store, asOf)
	if err != nil {
		return nil, err
	}
	conv := s.convs[gauge.Name()]
	if conv == nil {
		conv = reduce.NewConversation(gauge)
		s.convs[gauge.Name()] = conv
	}
	if to < conv.Head() {
		conv = reduce.NewConversation(gauge)
	}
	if to == conv.Head() {
		return conv, nil
	}
	for event, err := range store.Read(ctx, s.id, conv.Head()+1, to) {
		if err != nil {
			return nil, err
		}
		conv.Append(event)
	}
	return conv, nil
}

// upTo is asOf, or the log's head.
func (s *session) upTo(ctx context.Context, store eventlog.Store, asOf *eventlog.Seq) (eventlog.Seq, error) {
	info, err := s.look(ctx, store)
	if err != nil {
		return 0, err
	}
	s.head = info.Head
	if asOf == nil {
		return info.Head, nil
	}
	if *asOf > info.Head {
		return 0, &eventlog.NotFoundError{Kind: "event", Name: seqName(*asOf)}
	}
	return *asOf, nil
}

// look returns the session as it stands, and forgets everything about another that had
// its id before. For whoever has the session, the first look decides which one it works
// on: a later one is a *eventlog.NotFoundError where that one is gone. So what was read
// between two looks is of one session, and what is computed after them is of no mixture.
func (s *session) look(ctx context.Context, store eventlog.Store) (eventlog.Session, error) {
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

// remember keeps what was recorded, for the next comparison and for estimates. What
// is in s.last is the newest record of its kind: nothing can stand behind the head,
// or behind what was the newest before.
func (s *session) remember(r projection.Record, messages []Message, conv *reduce.Conversation) {
	if old, ok := s.last[stream(r)]; r.AsOf == s.head || ok && old.record.AsOf <= r.AsOf {
		s.last[stream(r)] = lastProjection{r, messages}
	}
	s.report = &lastReport{r, conv.Tokens()}
}
