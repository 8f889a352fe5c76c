// Package assemble makes the contexts of sessions: it reads the log, has the view computed,
// lays it out, hashes it, and records what was decided. It is the edge of the pure core: the
// only place that holds sessions in memory and asks for the time.
//
// [Engine.Assemble] takes a session's turn (sessions.go), gathers what decides its context
// (gather.go), has package decide compute it, makes the answer (answer.go) and records it
// (record.go). What is kept of a session between requests is in session.go. The engine's other
// methods have a file each: compaction.go, undo.go, explain.go, replay.go, project.go, shadow.go.
package assemble

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/fair"
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/memory"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/scrub"
)

// Options are what an Engine needs beside the store.
type Options struct {
	// Gauges returns the gauge of a tokenizer, or an error that says there is
	// no such tokenizer.
	Gauges func(tokenizer string) (budget.Gauge, error)
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
	room := min(cmp.Or(opts.CacheBytes, DefaultCacheBytes), 1<<40)
	e := &Engine{store: store, opts: opts, sessions: newSessions(opts.CacheSessions, int(room), opts.Work, opts.Processor, opts.SessionWait)}
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

// checkPolicy refuses options that make no policy.
func checkPolicy(p Policy) error {
	_, err := p.Projection.Compile()
	if wrong, ok := errors.AsType[*projection.OptionsError](err); ok {
		return &eventlog.InvalidError{Field: "policy.projection." + wrong.Field, Reason: wrong.Reason}
	}
	return err
}

// resolve computes the budget and finds its gauge.
func (e *Engine) resolve(spec budget.Spec) (budget.Budget, budget.Gauge, error) {
	b, err := spec.Resolve(e.opts.Models)
	if err != nil {
		return b, budget.Gauge{}, err
	}
	if _, ok := render.FormatNamed(b.Format); !ok {
		return b, budget.Gauge{}, &budget.SpecError{Field: "format", Reason: fmt.Sprintf("%q is no format", b.Format)}
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
func (e *Engine) gauge(b budget.Budget) (budget.Gauge, error) {
	gauge, err := e.opts.Gauges(b.Tokenizer)
	if f, ok := render.FormatNamed(b.Format); ok {
		gauge = f.Gauge(gauge)
	}
	return gauge, err
}

// Clock gives the time for records; nothing that is rendered depends on it.
type Clock func() time.Time
