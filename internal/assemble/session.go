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
	// expect makes room for what is read; nil where the session is not one of those that stay.
	// answers is set while a context is made, which is as large as the log at most.
	expect  func(s *session, bytes uint64)
	answers bool

	// pinned is the incarnation that whoever has the session works on; 0 before it looked.
	pinned eventlog.Incarnation
	// whole has whoever has the session read logs from their first event on.
	whole bool
	// layouts is how many were made, which is the id of the newest.
	layouts int
	kept
}

// kept is what a session holds of one incarnation. All of it is forgotten together.
type kept struct {
	// of is the incarnation, and head and logBytes the log's as it was last seen.
	of       eventlog.Incarnation
	head     eventlog.Seq
	logBytes uint64
	// indexed says that all records and calls are found by what is stored next to them.
	indexed bool

	convs   recent[*reduce.Conversation] // by tokenizer, and how the log is read
	encoded recent[*layout]              // by format and recall tool
	last    recent[lastProjection]       // by stream
	// digests are those that are stored next to the log, zero where none is, by fingerprint.
	digests recent[reduce.Written]
	// checkpoints are the sums of what is stored of what digests replace, by fingerprint.
	checkpoints recent[[32]byte]
	report      *lastReport
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

// A session keeps what it was used with last: two pairs of a tokenizer and a way to
// read the log are one agent that changes its model, eight streams as many policies.
const (
	maxConversations = 2
	maxFormats       = 2
	maxStreams       = 8
	maxProjectors    = 4
)

// reset forgets all that is kept.
func (s *session) reset() {
	s.kept = kept{
		convs:       recent[*reduce.Conversation]{limit: maxConversations},
		encoded:     recent[*layout]{limit: maxFormats},
		last:        recent[lastProjection]{limit: maxStreams},
		digests:     recent[reduce.Written]{limit: maxStreams},
		checkpoints: recent[[32]byte]{limit: maxStreams},
		projectors:  recent[projection.Policy]{limit: maxProjectors},
		observed:    recent[*records.Observation]{limit: maxStreams},
		ahead:       recent[ahead]{limit: maxStreams},
	}
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
	if _, gone := errors.AsType[*eventlog.NotFoundError](err); gone || err == nil && info.Incarnation != s.of {
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

// observation is what was observed of what is shown under a fingerprint.
func (s *session) observation(fingerprint string) *records.Observation {
	o, ok := s.observed.get(fingerprint)
	if !ok {
		o = &records.Observation{}
		s.observed.put(fingerprint, o, 0)
	}
	return o
}
