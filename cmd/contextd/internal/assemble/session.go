package assemble

import (
	"container/list"
	"context"
	"slices"
	"sync"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
)

// session is what is kept of a session between requests: nothing that the log
// and the records would not give again. It belongs to whoever acquired it.
type session struct {
	id    string
	turn  chan struct{} // holds one token while nobody uses the session
	place *list.Element
	chars int // counted in sessions.chars

	convs   map[string]*reduce.Conversation // by tokenizer
	encoded map[*reduce.Group]encodedGroup
	last    map[string]lastProjection // by fingerprint
	report  *lastReport
}

// lastProjection is what was sent last under a fingerprint.
type lastProjection struct {
	record   projection.Record
	messages []Message
}

// lastReport serves estimates for appends.
type lastReport struct {
	record projection.Record
	raw    uint64
}

// encodedGroup keeps the messages of a group under its edits.
type encodedGroup struct {
	edits    []reduce.Edit
	messages []Message
}

// maxCachedChars bounds the text of all sessions that stay in memory. What is
// derived from a text takes about as much again.
const maxCachedChars = 64 << 20

// sessions holds the sessions used last.
type sessions struct {
	mu     sync.Mutex
	limit  int
	byID   map[string]*session
	recent *list.List // newest first
	chars  int        // of all of them
}

func newSessions(limit int) *sessions {
	return &sessions{limit: max(limit, 1), byID: map[string]*session{}, recent: list.New()}
}

// acquire waits until nobody else uses the session. The caller must release it.
func (all *sessions) acquire(ctx context.Context, id string) (*session, func(), error) {
	all.mu.Lock()
	s := all.byID[id]
	if s == nil {
		s = &session{id: id, turn: make(chan struct{}, 1)}
		s.reset()
		s.turn <- struct{}{}
		s.place = all.recent.PushFront(s)
		all.byID[id] = s
		for len(all.byID) > all.limit {
			all.drop(all.recent.Back().Value.(*session))
		}
	} else {
		all.recent.MoveToFront(s.place)
	}
	all.mu.Unlock()
	select {
	case <-s.turn:
		return s, func() { all.release(s) }, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// release ends the use of a session. Where the texts in memory have become too
// many, the sessions that were not used for longest give way.
func (all *sessions) release(s *session) {
	chars := 0
	for _, conv := range s.convs {
		chars += conv.Chars()
	}
	all.mu.Lock()
	if all.byID[s.id] == s {
		all.chars += chars - s.chars
		s.chars = chars
		for all.chars > maxCachedChars && len(all.byID) > 1 {
			all.drop(all.recent.Back().Value.(*session))
		}
	}
	all.mu.Unlock()
	s.turn <- struct{}{}
}

// forget drops a session; whoever holds it now keeps using its own copy.
func (all *sessions) forget(id string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if s := all.byID[id]; s != nil {
		all.drop(s)
	}
}

func (all *sessions) drop(s *session) {
	all.recent.Remove(s.place)
	delete(all.byID, s.id)
	all.chars -= s.chars
}

func (s *session) reset() {
	s.convs = map[string]*reduce.Conversation{}
	s.encoded = map[*reduce.Group]encodedGroup{}
	s.last = map[string]lastProjection{}
	s.report = nil
}

// conversation returns the log up to asOf, or to its head, as groups. The
// session's own conversation only grows: an earlier asOf gets one of its own.
func (s *session) conversation(ctx context.Context, store eventlog.Store, gauge budget.Accountant, asOf *eventlog.Seq) (*reduce.Conversation, error) {
	info, err := store.Session(ctx, s.id)
	if err != nil {
		s.reset() // the session is gone, and what has its name later is another
		return nil, err
	}
	to := info.Head
	if asOf != nil {
		if *asOf > info.Head {
			return nil, &eventlog.NotFoundError{Kind: "event", Name: seqName(*asOf)}
		}
		to = *asOf
	}
	conv := s.convs[gauge.Name()]
	if conv == nil {
		conv = reduce.NewConversation(gauge)
		s.convs[gauge.Name()] = conv
	}
	if to < conv.Head() {
		if asOf == nil {
			s.reset() // the head went back: the session was deleted and made anew
			return s.conversation(ctx, store, gauge, asOf)
		}
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

// encode lays a projection out and encodes it, reusing the messages of groups
// that stand as they stood before.
func (s *session) encode(p projected) []Message {
	v := p.result.View
	next := make(map[*reduce.Group]encodedGroup, v.Len())
	digest, at := v.Digest()
	out := make([]Message, 0, v.Len()+len(p.reminders)+1)
	for i := range v.Len() {
		if i == at && digest.Through > 0 {
			out = append(out, encodeMessage(render.DigestMessage(digest)))
		}
		g := v.Group(i)
		kept, ok := s.encoded[g]
		if !ok || !slices.Equal(kept.edits, v.Edits(i)) {
			kept = encodedGroup{edits: v.Edits(i)}
			for _, m := range render.GroupMessages(v, i) {
				kept.messages = append(kept.messages, encodeMessage(m))
			}
		}
		next[g] = kept
		out = append(out, kept.messages...)
	}
	if at == v.Len() && digest.Through > 0 {
		out = append(out, encodeMessage(render.DigestMessage(digest)))
	}
	for _, r := range p.reminders {
		out = append(out, encodeMessage(render.ReminderMessage(r)))
	}
	s.encoded = next
	return out
}

func encodeMessage(m render.Message) Message {
	return Message{Message: m, JSON: render.AppendJSON(nil, m)}
}

// remember keeps what was recorded, for the next comparison and for estimates.
func (s *session) remember(r projection.Record, messages []Message, conv *reduce.Conversation) {
	if old, ok := s.last[r.Fingerprint]; !ok || old.record.AsOf <= r.AsOf {
		s.last[r.Fingerprint] = lastProjection{r, messages}
	}
	s.report = &lastReport{r, conv.Tokens()}
}
