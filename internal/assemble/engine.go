package assemble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/memory"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/render"
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
	// Work is what reading logs takes memory from; nil is as much as it needs.
	Work *memory.Budget
	// Observer, if not nil, observes every assembly.
	Observer Observer
}

// Observer watches assemblies, for traces and metrics.
type Observer interface {
	// Assembly is called before an assembly; the function it returns is called
	// after it, with the context or the error.
	Assembly(ctx context.Context, sessionID string) (context.Context, func(*Context, error))
}

// Engine assembles contexts. Its methods may be called from any goroutine;
// assemblies of one session run one after the other.
type Engine struct {
	store    eventlog.Store
	opts     Options
	sessions *sessions
}

// DefaultCacheBytes is how much sessions hold between requests where Options do not say.
const DefaultCacheBytes = 64 << 20

// New returns an engine over the store.
func New(store eventlog.Store, opts Options) *Engine {
	return &Engine{store: store, opts: opts, sessions: newSessions(opts.CacheSessions, int(min(cmp.Or(opts.CacheBytes, DefaultCacheBytes), 1<<40)), opts.Work)}
}

// Assemble renders the context of a session and records the projection, unless
// the request is a preview. The record is durable on return.
func (e *Engine) Assemble(ctx context.Context, req Request) (out *Context, err error) {
	if e.opts.Observer != nil {
		var done func(*Context, error)
		ctx, done = e.opts.Observer.Assembly(ctx, req.SessionID)
		defer func() { done(out, err) }()
	}
	out, due, err := e.assemble(ctx, req)
	if due != nil {
		req.Wait(ctx, *due)
		req.Wait = nil
		out, _, err = e.assemble(ctx, req)
	}
	return out, err
}

// assemble takes the session's turn and assembles its context; due is set instead where
// a summary should be waited for first.
func (e *Engine) assemble(ctx context.Context, req Request) (out *Context, due *summarize.Proposal, err error) {
	s, release, err := e.sessions.acquire(ctx, req.SessionID)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	in, earlier, err := e.gather(ctx, s, req)
	switch {
	case err != nil:
	case earlier != nil:
		out, err = e.repeat(ctx, s, req, *earlier)
	default:
		out, due, err = e.attempt(ctx, s, in, req)
	}
	if out != nil && err == nil {
		s.handOver(ctx, out)
	}
	return out, due, err
}

// gather reads what a request is answered from: everything that decides what its context
// shows, or the record that its idempotency key led to before.
func (e *Engine) gather(ctx context.Context, s *session, req Request) (in inputs, earlier *projection.Record, err error) {
	if err := checkPolicy(req.Policy); err != nil {
		return in, nil, err
	}
	b, gauge, err := e.resolve(req.Budget)
	if err != nil {
		return in, nil, err
	}
	s.answers = true
	conv, err := s.shown(ctx, e.store, gauge, req.AsOf, req.Policy.Projection)
	if err != nil {
		return in, nil, err
	}
	if err := e.index(ctx, s); err != nil {
		return in, nil, err
	}
	if req.IdempotencyKey != "" {
		if r, ok, err := e.recordByKey(ctx, s, req); ok || err != nil {
			return in, &r, err
		}
	}
	learnt, rejected, err := e.calibration(ctx, req.SessionID, conv.Head(), b)
	if err != nil {
		return in, nil, err
	}
	if b = b.Calibrated(learnt); rejected > 0 {
		// The next prompt is smaller whatever the target says: the window may be less
		// than the caller thinks.
		req.ask.Goal = budget.Budget{Target: min(b.Target, rejected)}.Share(req.Policy.Reduction.Collapse.To)
	}
	if in, err = e.inputs(ctx, s, conv, b, req); err != nil {
		return in, nil, err
	}
	_, err = s.look(ctx, e.store)
	return in, nil, err
}

// attempt answers a request that was not answered before, unless a summary is due that the
// request waits for.
func (e *Engine) attempt(ctx context.Context, s *session, in inputs, req Request) (*Context, *summarize.Proposal, error) {
	p, err := in.run()
	if err != nil {
		return nil, nil, err
	}
	if req.Wait != nil {
		if due := in.due(p, req); due != nil {
			return nil, due, nil
		}
	}
	out, err := e.finish(ctx, s, p, req, in.record(p, req, e.opts.Clock()), req.Preview)
	if err == nil && !req.Preview {
		s.lookAhead(in, p, req, out)
	}
	return out, nil, err
}

// repeat answers a request whose idempotency key was used before.
func (e *Engine) repeat(ctx context.Context, s *session, req Request, r projection.Record) (*Context, error) {
	p, err := e.again(ctx, s, r)
	if err != nil {
		return nil, err
	}
	return e.finish(ctx, s, p, req, r, true)
}

// finish builds the answer, compares it with the projection before, and records
// it unless it is recorded already or only a preview.
func (e *Engine) finish(ctx context.Context, s *session, p projected, req Request, record projection.Record, recorded bool) (*Context, error) {
	var err error
	if record.Previous, err = e.previous(ctx, s, record); err != nil {
		return nil, err
	}
	out, messages, err := build(s, p, req, record)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	if out.Cache, err = e.compare(ctx, s, messages, out.Projection); err != nil {
		return nil, err
	}
	out.cacheHints()
	if err := e.skip(ctx, s, out, req.Have); err != nil {
		return nil, err
	}
	if recorded {
		_, err := s.look(ctx, e.store)
		return out, err
	}
	if out.Projection.ID, err = e.nextID(ctx, req.SessionID, record.AsOf); err != nil {
		return nil, err
	}
	if err := e.putRecord(ctx, s, out.Projection); err != nil {
		return nil, err
	}
	s.remember(out.Projection, messages, p.conv)
	return out, nil
}

// build encodes and hashes what was projected. It also returns the messages that
// the prefix hash covers.
func build(s *session, p projected, req Request, record projection.Record) (*Context, []Message, error) {
	f, err := format(record)
	if err != nil {
		return nil, nil, err
	}
	injected, err := injections(p.conv.Gauge(), record.Budget, req.Injections)
	if err != nil {
		return nil, nil, err
	}
	for i := range injected {
		record.Injected += injected[i].Tokens
	}
	encoded := s.encode(p, f)
	all, same := encoded.with(injected)
	out := &Context{SessionID: req.SessionID, AsOf: record.AsOf, MessageCount: len(all), PrefixMessages: same}
	out.Messages = all
	out.ContextHash = hashOf(all)
	out.PrefixHash = out.ContextHash
	if len(injected) > 0 {
		out.PrefixHash = hashOf(encoded.messages)
	}
	record.PrefixHash, record.MessageCount = out.PrefixHash, len(encoded.messages)
	out.Projection, out.Budget = record, report(p, record.Budget)
	out.Pointers = s.described.facts(record.Pointers, p.result.View.Groups())
	return out, encoded.messages, nil
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

// gauge is what counts the tokens of a budget: its tokenizer, with what its format
// puts around messages.
func (e *Engine) gauge(b budget.Budget) (budget.Accountant, error) {
	gauge, err := e.opts.Gauges(b.Tokenizer)
	if f, ok := render.FormatNamed(b.Format); ok {
		gauge = f.Gauge(gauge)
	}
	return gauge, err
}

// nextID names the next projection of the log at an event: "p", the event and a number
// that distinguishes projections at the same event. It has four digits, and four more where
// those are used up, so that a newer id sorts after an older one.
func (e *Engine) nextID(ctx context.Context, sessionID string, asOf eventlog.Seq) (string, error) {
	q := eventlog.ArtifactQuery{Kind: recordKind, From: asOf, To: max(asOf, 1), Reverse: true}
	for a, err := range e.store.Artifacts(ctx, sessionID, q) {
		if err != nil {
			return "", err
		}
		if a.Seq != asOf {
			continue
		}
		digits := a.ID[strings.LastIndexByte(a.ID, '-')+1:]
		if strings.Trim(digits, "9") == "" {
			return a.ID + "0001", nil
		}
		n, err := strconv.ParseUint(digits, 10, 64)
		return fmt.Sprintf("p%d-%0*d", asOf, len(digits), n+1), err
	}
	return fmt.Sprintf("p%d-0001", asOf), nil
}

// asOfOf reads the event out of a projection's id.
func asOfOf(projectionID string) (eventlog.Seq, bool) {
	var asOf, n uint64
	if c, err := fmt.Sscanf(projectionID, "p%d-%d", &asOf, &n); err != nil || c != 2 {
		return 0, false
	}
	return eventlog.Seq(asOf), fmt.Sprintf("p%s-%04d", strconv.FormatUint(asOf, 10), n) == projectionID
}
