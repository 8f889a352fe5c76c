// Package assemble makes the contexts of sessions: it reads the log, has the view computed, lays it out, hashes it,
// and records what was decided. Of the packages that decide contexts it is the only one that keeps sessions in memory
// and uses a clock.
//
// [Engine.Assemble] acquires a session (sessions.go), gathers the inputs of its context (gather.go), has package
// decide compute it, makes the answer (answer.go) and records it (record.go). session.go has what is cached of a
// session between requests. The engine's other methods have a file each: compaction.go, undo.go, explain.go,
// replay.go, project.go, shadow.go.
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

// Options are what an Engine needs besides the store.
type Options struct {
	// Gauges returns the gauge of a tokenizer, or an error if there is no such tokenizer.
	Gauges func(tokenizer string) (budget.Gauge, error)
	Models budget.Models
	Clock  Clock
	// CacheSessions is how many sessions stay in memory between requests.
	CacheSessions int
	// CacheBytes is how many bytes they may take together; 0 is DefaultCacheBytes.
	CacheBytes uint64
	// SessionWait is how long a call waits for other calls of its session; 0 is without limit.
	SessionWait time.Duration
	// Work is the budget of memory for reading logs; nil is no limit.
	Work *memory.Budget
	// Processor limits how many assemblies compute at once; nil is no limit.
	Processor *fair.Turns
	// Scrub has the rules by which credentials are replaced if a policy says so; nil is the built-in ones.
	Scrub *scrub.Scrubber
	// Namespace is hashed into the names of sessions that providers get (prompt cache keys). It must differ between
	// stores that may have the same session ids. It may be empty if there is one store.
	Namespace string
	// Journal stores artifacts together with the events about sessions; nil makes one without subscribers.
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
	// shadow computes what other policies would have sent; it is nil in a shadow.
	shadow *Engine
	// replays are the sessions of which recorded projections are replayed, in the same pool.
	replays *sessions
}

// DefaultCacheBytes is how many bytes sessions may take between requests if Options do not say.
const DefaultCacheBytes = 64 << 20

// New returns an engine over the store.
func New(store Store, opts Options) *Engine {
	if opts.Journal == nil {
		opts.Journal = lifecycle.NewJournal(store, lifecycle.NewBus(lifecycle.BusOptions{}), opts.Clock)
	}
	if opts.Scrub == nil {
		opts.Scrub, _ = scrub.New(scrub.Options{}) // only patterns can make it fail, and there are none
	}
	room := min(cmp.Or(opts.CacheBytes, DefaultCacheBytes), 1<<40)
	e := &Engine{store: store, opts: opts, sessions: newSessions(opts.CacheSessions, int(room), opts.Work, opts.Processor, opts.SessionWait)}
	e.sessions.shared = !store.Capabilities().OneWriter
	return e.complete()
}

// Over returns an engine for another store, with a namespace of its own. The two share memory for sessions, but no
// sessions.
func (e *Engine) Over(store Store, namespace string, journal *lifecycle.Journal) *Engine {
	opts := e.opts
	opts.Namespace, opts.Journal = namespace, journal
	of := &Engine{store: store, opts: opts, sessions: e.sessions.pool.sessions()}
	return of.complete()
}

// Cached returns how many sessions this engine and those that share its memory keep between requests, and how many
// bytes these take.
func (e *Engine) Cached() (sessions, bytes int64) {
	p := e.sessions.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(p.recent.Len()), int64(p.bytes)
}

// checkPolicy refuses projection options that do not compile.
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

// reduction returns the policy of reduction under a budget.
func (e *Engine) reduction(p Policy, b budget.Budget) reduce.Policy {
	model, _ := e.opts.Models.Lookup(b.Model)
	return p.ReductionFor(model)
}

// fingerprint returns the key under which decisions by a policy and a budget hold.
func (e *Engine) fingerprint(p Policy, b budget.Budget) string {
	return records.Fingerprint(p.Projection, e.reduction(p, b), b)
}

// gauge counts the tokens of a budget: by its tokenizer, and by what its format puts around messages and sends of reasoning.
func (e *Engine) gauge(b budget.Budget) (budget.Gauge, error) {
	gauge, err := e.opts.Gauges(b.Tokenizer)
	if f, ok := render.FormatNamed(b.Format); ok {
		gauge = f.GaugeFor(gauge, b.Reasoning)
	}
	return gauge, err
}

// Clock gives the time for records; nothing that is rendered depends on it.
type Clock func() time.Time
