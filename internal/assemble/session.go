package assemble

import (
	"bytes"
	"container/list"
	"context"
	"encoding/json"

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

// session caches, between requests, what is derived from a session's log and records. All of it can be computed again
// from the store. Only the caller that acquired it may use it.
type session struct {
	id   string
	turn chan struct{} // holds one token while no caller has acquired the session

	// pool.mu guards these: home, the engine's sessions by id; place, in the pool's LRU list; users, the
	// callers that use the session or wait for it; stale and newSummaries, set if everything held or the
	// list of summaries must be forgotten at the next acquire; and bytes, its share of pool.bytes.
	home         map[string]*session
	place        *list.Element
	users        int
	stale        bool
	newSummaries bool
	bytes        int

	// room is how many bytes all sessions may hold together. work is the budget of memory for reading logs,
	// and grant what the current request has reserved from it.
	room  int
	work  *memory.Budget
	grant *memory.Grant
	// computing is the current request's share of the processor.
	computing fair.Turn
	// expect counts what is about to be read towards the pool, which evicts sessions for it; nil for a
	// session outside the pool. answers is set while a context is made: a context may be as large as the
	// log.
	expect  func(s *session, bytes uint64)
	answers bool

	// pinned is the incarnation that the current request works on; 0 before its first look.
	pinned eventlog.Incarnation
	// whole makes the current request read logs from their first event on, not from a checkpoint.
	whole bool
	// layouts counts the layouts made so far; the count is the id of the newest.
	layouts int
	kept
}

// kept has what a session caches of one incarnation. All of it is forgotten together.
type kept struct {
	// of is the incarnation; head, its place in the hash chain, and logBytes are of its log when it was last looked at.
	of       eventlog.Incarnation
	head     eventlog.Seq
	chain    []byte
	logBytes uint64
	// indexed says that the indexes of records and calls are complete (records.Index).
	indexed bool

	convs   recent[*reduce.Conversation] // by tokenizer, and how the log is read
	encoded recent[*layout]              // by format, recall tool and what matters of the model
	last    recent[lastProjection]       // by stream
	// digests are those stored last, by fingerprint; zero where none is stored.
	digests recent[reduce.Written]
	// checkpoints are the checksums of the checkpoints stored last, by fingerprint.
	checkpoints recent[[32]byte]
	report      *lastReport
	// described caches the facts about the blocks that the last answer's pointers name.
	described pointers.Described
	// summaries are the newest of the session, newest first and without their texts: those that were looked at.
	// allSummaries says that there are no others. quoted are those that were read last, by id.
	summaries    []summarize.Summary
	allSummaries bool
	quoted       recent[summarize.Summary]
	// projectors are compiled projection policies, by recall tool and the JSON of their options.
	projectors recent[projection.Policy]
	// observed caches the observations about the last views, and ahead what lookAhead found for them; both
	// by fingerprint.
	observed recent[*records.Observation]
	ahead    recent[ahead]
	// replayed is the event of the projection that was replayed last; 0 if none was.
	replayed eventlog.Seq
	// known is what the session's watchers were informed of about reminders; nil before it is read.
	known *decide.Known
}

// The limits of the caches. One agent that changes its model needs two conversations (a tokenizer and a way
// of reading the log each); eight streams are as many policies.
const (
	maxConversations = 2
	maxFormats       = 2
	maxStreams       = 8
	maxProjectors    = 4
	maxQuoted        = 4
)

// forgetSummaries forgets the list of summaries, because others may have been stored.
func (s *session) forgetSummaries() {
	s.summaries, s.allSummaries = nil, false
	s.quoted.keep(0)
}

// reset forgets everything cached.
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
		quoted:      recent[summarize.Summary]{limit: maxQuoted},
	}
}

// projector returns the compiled policy of the options, from the cache if it is there. A policy caches
// facts gathered from the session, and texts that name the recall tool, so there is one for each tool.
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

// look returns the session's current state, and resets the cache if a different incarnation has the id now, or the
// store was set back. A request's first look pins the incarnation; later looks return *eventlog.NotFoundError if that one
// is gone. So all that is read between two looks is of one incarnation.
func (s *session) look(ctx context.Context, store Store) (eventlog.Session, error) {
	info, err := store.Session(ctx, s.id)
	if eventlog.IsMissing(err) || err == nil && info.Incarnation != s.of {
		s.reset()
	}
	if err != nil {
		return info, err
	}
	if s.of = info.Incarnation; s.pinned != 0 && s.pinned != s.of {
		return info, eventlog.NoSession(s.id)
	}
	same, err := s.continuedBy(ctx, store, info)
	if err != nil {
		return info, err
	}
	if !same {
		s.reset()
		s.of = info.Incarnation
		if s.pinned != 0 {
			return info, &eventlog.ConflictError{Session: s.id, What: "its log"}
		}
	}
	s.pinned, s.head, s.chain, s.logBytes = s.of, info.Head, info.ChainHead, info.LogBytes
	return info, nil
}

// continuedBy reports whether the log still has the events that it had. A database that others write to may lose some
// while it is used: a restored backup and a standby that lacks them take its place.
func (s *session) continuedBy(ctx context.Context, store Store, info eventlog.Session) (bool, error) {
	switch {
	case s.chain == nil:
		return true, nil
	case info.Head <= s.head:
		return info.Head == s.head && bytes.Equal(info.ChainHead, s.chain), nil
	case store.Capabilities().OneWriter:
		return true, nil
	}
	chain, err := store.ChainHead(ctx, s.id, s.head)
	return bytes.Equal(chain, s.chain), err
}

// index completes the stored indexes of records and calls. This is needed once for each cached incarnation.
func (s *session) index(ctx context.Context, store eventlog.Artifacts) error {
	if s.indexed {
		return nil
	}
	err := records.Index(ctx, store, s.id, s.of)
	s.indexed = err == nil
	return err
}

// observation returns the cached observation of the views under a fingerprint, to be continued by the
// caller.
func (s *session) observation(fingerprint string) *records.Observation {
	o, ok := s.observed.get(fingerprint)
	if !ok {
		o = &records.Observation{}
		s.observed.put(fingerprint, o, 0)
	}
	return o
}
