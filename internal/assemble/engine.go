// Package assemble makes the contexts of sessions: it reads the log, has the view computed,
// lays it out, hashes it, and records what was decided. It is the edge of the pure core: the
// only place that holds sessions in memory and asks for the time.
package assemble

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/fair"
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/memory"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/scrub"
	"github.com/contextd/contextd/internal/summarize"
)

// Options are what an Engine needs beside the store.
type Options struct {
	// Gauges returns the accountant of a tokenizer, or an error that says there is
	// no such tokenizer.
	Gauges func(tokenizer string) (budget.Accountant, error)
	Models budget.Models
	Clock  Clock
	// CacheSessions is how many sessions stay in memory between requests.
	CacheSessions int
	// CacheBytes is how much they may hold together; 0 is DefaultCacheBytes.
	CacheBytes uint64
	// SessionWait is how long a call waits for others of its session; 0 is as long as they take.
	SessionWait time.Duration
	// Work is what reading logs takes memory from; nil is as much as it needs.
	Work *memory.Budget
	// Processor is what assembling takes turns of; nil is as many as are asked for.
	Processor *fair.Turns
	// Scrub has the rules by which credentials are replaced where a policy says so; nil has
	// the built-in ones.
	Scrub *scrub.Scrubber
	// Namespace keeps the sessions of the store apart from those of other stores that have the same
	// ids, where providers are given a name of a session. It may be empty for one store.
	Namespace string
	// Journal keeps the events of sessions; nil is one that nobody watches.
	Journal *lifecycle.Journal
}

// Store is what an engine needs of a store.
type Store = lifecycle.Store

// Engine assembles contexts. Its methods may be called from any goroutine;
// assemblies of one session run one after the other.
type Engine struct {
	store    Store
	opts     Options
	sessions *sessions
	// shadow computes what other policies would have sent; nil in itself.
	shadow *Engine
}

// DefaultCacheBytes is how much sessions hold between requests where Options do not say.
const DefaultCacheBytes = 64 << 20

// New returns an engine over the store.
func New(store Store, opts Options) *Engine {
	if opts.Journal == nil {
		opts.Journal = lifecycle.NewJournal(store, lifecycle.NewBus(lifecycle.BusOptions{}), opts.Clock)
	}
	if opts.Scrub == nil {
		opts.Scrub, _ = scrub.New(scrub.Options{}) // fails for patterns alone
	}
	e := &Engine{store: store, opts: opts, sessions: newSessions(opts.CacheSessions, int(min(cmp.Or(opts.CacheBytes, DefaultCacheBytes), 1<<40)), opts.Work, opts.Processor, opts.SessionWait)}
	e.sessions.shared = !store.Capabilities().OneWriter
	return e.withShadow()
}

// Over returns an engine for another store, with a namespace of its own. The two share the
// memory for sessions, and no session.
func (e *Engine) Over(store Store, namespace string, journal *lifecycle.Journal) *Engine {
	opts := e.opts
	opts.Namespace, opts.Journal = namespace, journal
	of := &Engine{store: store, opts: opts, sessions: e.sessions.pool.sessions()}
	return of.withShadow()
}

// gather reads what a request is answered from: everything that decides what its context
// shows, or the record that its idempotency key led to before.
func (e *Engine) gather(ctx context.Context, s *session, req Request) (in decide.Inputs, earlier *records.Projection, err error) {
	if err := checkPolicy(req.Policy); err != nil {
		return in, nil, err
	}
	req.Policy.Projection = req.Policy.Projection.WithScrubber(e.opts.Scrub)
	b, gauge, err := e.resolve(req.Budget)
	if err != nil {
		return in, nil, err
	}
	s.answers = true
	fingerprint := e.fingerprint(req.Policy, b)
	conv, err := s.shown(ctx, e.store, gauge, req.AsOf, req.Policy.Projection, fingerprint)
	if err != nil {
		return in, nil, err
	}
	if err := s.index(ctx, e.store); err != nil {
		return in, nil, err
	}
	if req.IdempotencyKey != "" {
		if r, ok, err := e.recordByKey(ctx, s, req); ok || err != nil {
			return in, &r, err
		}
	}
	learnt, rejected, err := records.Calibration(ctx, e.store, req.SessionID, conv.Head(), b)
	if err != nil {
		return in, nil, err
	}
	b = b.Calibrated(learnt)
	req.ask.Rejected = rejected // the window may be less than the caller thinks
	if in, err = e.inputs(ctx, s, conv, b, req, fingerprint); err != nil {
		return in, nil, err
	}
	_, err = s.look(ctx, e.store)
	return in, nil, err
}

// inputs gathers what a request decides by from the records and the artifacts.
func (e *Engine) inputs(ctx context.Context, s *session, conv *reduce.Conversation, b budget.Budget, req Request, fingerprint string) (decide.Inputs, error) {
	in := decide.Inputs{
		Ctx: ctx, SessionID: s.id, Of: s.of, Conversation: conv, Reduction: e.reduction(req.Policy, b), Budget: b, Ask: req.ask,
		Projection: req.Policy.Projection, Summarizing: req.Policy.Summaries, Fingerprint: fingerprint,
	}
	var err error
	if in.Policy, err = s.projector(in.Projection.WithLive(conv), in.Reduction.Recall); err != nil {
		return in, err
	}
	last, err := records.DecisionsAt(ctx, e.store, req.SessionID, in.Fingerprint, conv)
	if err != nil {
		return in, err
	}
	in.Before, in.ShownBefore = last.Reduction, last.Shown
	in.Observed = s.observation(in.Fingerprint)
	if in.Written, err = s.digest(ctx, e.store, in.Fingerprint, conv); err != nil {
		return in, err
	}
	in.Summaries, err = e.offered(ctx, s, in)
	return in, err
}

// record describes the projection that a request led to.
func (r Request) record(in decide.Inputs, p decide.Projected, at time.Time) records.Projection {
	out := in.Record(p, at)
	out.Reason, out.IdempotencyKey, out.RequestDigest = r.Policy.Reason, r.IdempotencyKey, r.Digest
	return out
}

// attempt answers a request that was not answered before, unless a summary is due that the
// request waits for.
func (e *Engine) attempt(ctx context.Context, s *session, in decide.Inputs, req Request) (*Context, *summarize.Proposal, error) {
	p, err := in.Run()
	if err != nil {
		return nil, nil, err
	}
	if req.Wait != nil {
		if due := in.Due(p); due != nil {
			return nil, due, nil
		}
	}
	out, laid, err := e.answer(ctx, s, p, req, req.record(in, p, e.opts.Clock()))
	if err != nil {
		return nil, nil, err
	}
	if req.Preview {
		_, err := s.look(ctx, e.store)
		return out, nil, err
	}
	out.Collapsed = in.Forced(p)
	if err := e.record(ctx, s, p, out, laid, req.shadow); err != nil {
		return nil, nil, err
	}
	if req.shadow != nil { // it has no summaries made
		return out, nil, nil
	}
	out.Proposed, out.Pressure = s.lookAhead(in, p)
	if in.Conversation.Incomplete() {
		asOf := in.Conversation.Head()
		if in.Conversation, err = s.shown(ctx, e.store, in.Conversation.Gauge(), &asOf, in.Projection, ""); err != nil {
			return nil, nil, err
		}
		if p, err = in.Run(); err != nil {
			return nil, nil, err
		}
		out.Proposed, out.Pressure = in.Ahead(p)
	}
	return out, nil, nil
}

// repeat answers a request whose idempotency key was used before.
func (e *Engine) repeat(ctx context.Context, s *session, req Request, r records.Projection) (*Context, error) {
	p, err := e.again(ctx, s, r, "")
	if err != nil {
		return nil, err
	}
	out, _, err := e.answer(ctx, s, p, req, r)
	if err != nil {
		return nil, err
	}
	_, err = s.look(ctx, e.store)
	return out, err
}

// answer builds the answer and compares it with the projection before. It also returns what the
// prefix hash covers.
func (e *Engine) answer(ctx context.Context, s *session, p decide.Projected, req Request, record records.Projection) (*Context, encoding, error) {
	var err error
	if record.Previous, err = e.previous(ctx, s, record); err != nil {
		return nil, encoding{}, err
	}
	out, laid, err := build(s, p, req, record)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, encoding{}, err
	}
	if out.Cache, err = e.compare(ctx, s, laid, out.Projection); err != nil {
		return nil, encoding{}, err
	}
	if r := &out.Projection; r.Previous != "" && r.ID == "" {
		r.Shared = &records.Shared{Messages: out.Cache.StableMessages, Tokens: out.Cache.StableTokens, BrokenBy: out.Cache.BrokenBy}
	}
	out.cacheHints(e.opts.Namespace)
	return out, laid, e.skip(ctx, s, out, req.Have)
}

// record stores the projection of an answer with the events that report it, or with the shadow that
// it is; durable on return.
func (e *Engine) record(ctx context.Context, s *session, p decide.Projected, out *Context, laid encoding, shadow *Shadow) error {
	known, err := s.knownReminders(ctx, e.store)
	if err != nil {
		return err
	}
	reminders, known := p.ReminderNews(known)
	r := &out.Projection
	// A fork knows what was known at this event.
	r.RemindersTurns, r.RemindersCollapsed = p.Conversation.Turns(), min(known.Collapsed, r.AsOf)
	if r.ID, err = records.NextID(ctx, e.store, s.id, r.AsOf); err != nil {
		return err
	}
	all, err := r.Prepare(ctx, e.store, s.id, s.of)
	if err != nil {
		return err
	}
	digest, err := e.newDigest(ctx, s, p, r.Fingerprint)
	if err != nil {
		return err
	}
	checkpoint, checkpointSum, err := e.newCheckpoint(ctx, s, p, r.Fingerprint)
	if err != nil {
		return err
	}
	all = append(all, checkpoint...)
	if digest != nil {
		a, err := records.DigestArtifact(r.Fingerprint, *digest)
		if err != nil {
			return err
		}
		all = append(all, a)
	}
	s.computing.End() // the disk computes nothing
	if shadow != nil {
		err = e.recordShadow(ctx, s, *shadow, out, all)
	} else {
		err = e.opts.Journal.Put(ctx, lifecycle.Entry{SessionID: s.id, Of: s.of, Events: out.news(reminders), Artifacts: all})
	}
	if err != nil {
		return err
	}
	s.known = &known
	if digest != nil && r.AsOf == s.head {
		s.digests.put(r.Fingerprint, *digest, len(digest.Text))
	}
	if len(checkpoint) > 0 {
		s.checkpoints.put(r.Fingerprint, checkpointSum, len(checkpointSum))
	}
	s.remember(*r, laid, p.Conversation)
	return nil
}

// build encodes and hashes what was projected. It also returns what the prefix hash covers.
func build(s *session, p decide.Projected, req Request, record records.Projection) (*Context, encoding, error) {
	f, err := format(record)
	if err != nil {
		return nil, encoding{}, err
	}
	injected, err := injections(p.Conversation.Gauge(), record.Budget, req.Injections)
	if err != nil {
		return nil, encoding{}, err
	}
	for i := range injected {
		record.Injected += injected[i].Tokens
	}
	encoded := s.encode(p, f)
	all, same := encoded.with(injected)
	out := &Context{SessionID: req.SessionID, Of: s.of, AsOf: record.AsOf, MessageCount: len(all), PrefixMessages: same}
	out.Messages = all
	out.PrefixHash = encoded.hash
	out.ContextHash = out.PrefixHash
	if len(injected) > 0 {
		out.ContextHash = hashOf(all)
		record.ContextHash, record.ContextMessages, record.PrefixMessages = out.ContextHash, len(all), same
	}
	record.PrefixHash, record.MessageCount = out.PrefixHash, len(encoded.messages)
	record.Raw, record.Tiers = p.Conversation.Tokens(), withReminders(encoded.tiers, p.Reminders)
	out.Projection, out.Budget = record, Recorded(record)
	if len(record.Pointers) == 0 {
		s.described = nil
	} else {
		out.Pointers = s.described.Facts(record.Pointers, p.Result.View.Groups())
	}
	return out, encoded, nil
}

// previous names the record that one is compared with: where it is new, the newest of its
// stream that is not after it.
func (e *Engine) previous(ctx context.Context, s *session, r records.Projection) (string, error) {
	if r.ID != "" || r.AsOf == 0 { // nothing was shown at 0
		return r.Previous, nil
	}
	if last, ok := s.last.get(r.Stream()); ok && last.record.AsOf <= r.AsOf && !e.sessions.shared {
		return last.record.ID, nil
	}
	return records.InStream(ctx, e.store, s.id, r.Stream(), r.AsOf)
}

// recordByKey is the record of the request's key, wherever in the log it was made.
func (e *Engine) recordByKey(ctx context.Context, s *session, req Request) (r records.Projection, ok bool, err error) {
	id, err := records.ByKey(ctx, e.store, s.id, req.IdempotencyKey)
	if id == "" || err != nil {
		return r, false, err
	}
	if r, err = records.Get(ctx, e.store, s.id, id); err != nil {
		return r, false, err
	}
	if len(r.RequestDigest) > 0 && !bytes.Equal(r.RequestDigest, req.Digest) {
		return r, false, &KeyConflictError{req.IdempotencyKey, r.ID}
	}
	return r, true, nil
}

// checkPolicy refuses options that make no policy.
func checkPolicy(p Policy) error {
	_, err := p.Projection.Compile()
	var wrong *projection.OptionsError
	if errors.As(err, &wrong) {
		return &eventlog.InvalidError{Field: "policy.projection." + wrong.Field, Reason: wrong.Reason}
	}
	return err
}

// resolve computes the budget and finds its gauge.
func (e *Engine) resolve(spec budget.Spec) (budget.Budget, budget.Accountant, error) {
	b, err := spec.Resolve(e.opts.Models)
	if err != nil {
		return b, budget.Accountant{}, err
	}
	if _, ok := render.FormatNamed(b.Format); !ok {
		return b, budget.Accountant{}, &budget.SpecError{Field: "format", Reason: fmt.Sprintf("%q is no format", b.Format)}
	}
	gauge, err := e.gauge(b)
	if err != nil {
		return b, gauge, &budget.SpecError{Field: "tokenizer", Reason: err.Error()}
	}
	return b, gauge, nil
}

// reduction is the policy of reduction under a budget.
func (e *Engine) reduction(p Policy, b budget.Budget) reduce.Policy {
	model, _ := e.opts.Models.Lookup(b.Model)
	return p.ReductionFor(model)
}

// fingerprint is that under which decisions by a policy and a budget stick.
func (e *Engine) fingerprint(p Policy, b budget.Budget) string {
	return records.Fingerprint(p.Projection, e.reduction(p, b), b)
}

// gauge is what counts the tokens of a budget: its tokenizer, with what its format
// puts around messages.
func (e *Engine) gauge(b budget.Budget) (budget.Accountant, error) {
	gauge, err := e.opts.Gauges(b.Tokenizer)
	if f, ok := render.FormatNamed(b.Format); ok {
		gauge = f.Gauge(gauge)
	}
	return gauge, err
}
