package server

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/contextd/contextd/cmd/contextd/internal/limit"
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/compaction"
	"github.com/contextd/contextd/internal/fair"
	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/memory"
	"github.com/contextd/contextd/internal/policy"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/scrub"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/pull"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// Meter counts what the services did. All methods may be called from any
// goroutine and must not block.
type Meter interface {
	// Appended counts a batch that is durable: the time since its admission, its new events and their
	// content bytes.
	Appended(ctx context.Context, took time.Duration, events int, bytes uint64)
	// Assembling is called before an assembly for a session, in the context of its call.
	Assembling(ctx context.Context, sessionID string)
	// Assembled counts an assembly; c is nil if it failed.
	Assembled(ctx context.Context, took time.Duration, c *assemble.Context, err error)
	// Recorded counts a model call that was reported.
	Recorded(ctx context.Context, c records.Call)
	// Shadowed counts the shadow of a context.
	Shadowed(ctx context.Context, s Shadowed)
}

// Options are the parts of a server. Meter, All, Processor, Tasks and Scrub may be nil; all other
// fields are required.
type Options struct {
	Tenant
	// Gauges opens the gauge of a tokenizer. It returns an error if there is none.
	Gauges   func(tokenizer string) (budget.Gauge, error)
	Models   budget.Models
	Policies policy.Set
	// Budget applies if neither the request nor the session has one.
	Budget *contextdv1.Budget
	Limits limit.Limits
	// All has the sessions of all tenants; nil if there is only this tenant.
	All eventlog.Log
	// Count counts sessions for metrics even without a limit.
	Count bool
	// Work is the memory for events that calls read, and for what they compute from them.
	Work *memory.Budget
	// PolicyWork is the memory for large policies, which calls take before Work.
	PolicyWork *memory.Budget
	// Processor has the turns for long computations; nil does not limit them.
	Processor *fair.Turns
	// Clock is for the times of events that have none, and of sessions.
	Clock func() time.Time
	// NewID makes ids for events that have none.
	NewID func() (string, error)
}

// Tenant has the parts that serve the sessions of one tenant. None of them has access to another's.
type Tenant struct {
	Store  eventlog.Store
	Engine *assemble.Engine
	Logger *slog.Logger
	Meter  Meter
	// Scrub replaces credentials in what is stored; nil replaces nothing.
	Scrub *scrub.Scrubber
	// Hooks are the subscribers to ask before and after compactions; Lifecycle has the events of sessions.
	Hooks     *lifecycle.Hooks
	Lifecycle *lifecycle.Journal
	// Tasks is nil if no summarizer is of type pull.
	Tasks       *pull.Queue
	Compactor   *compaction.Compactor
	Summarizers *summarize.Registry
}

// Server implements the services of the API for one tenant.
type Server struct {
	contextdv1.UnimplementedContextServiceServer
	transcripts transcripts
	compaction  compactions
	shadows     shadows

	*shared
	store  eventlog.Store
	engine *assemble.Engine
	logger *slog.Logger
	meter  Meter
	scrub  *scrub.Scrubber
	quotas quotas
}

// shared has the parts that the servers of all tenants share. All that it has of sessions is a cache of their
// settings, by incarnation.
type shared struct {
	gauges   func(string) (budget.Gauge, error)
	models   budget.Models
	policies atomic.Pointer[policy.Set]
	budget   *contextdv1.Budget
	limits   limit.Limits
	work     *memory.Budget
	policing *memory.Budget
	turns    *fair.Turns
	imports  *harness.Memory
	clock    func() time.Time
	newID    func() (string, error)
	settings settingsCache
	count    bool
	total    quotas // that of all tenants, if anything is counted for it

	// draining is a context that ends when the servers begin to drain.
	draining context.Context
	drain    context.CancelFunc
}

// New returns a server. The caller keeps the parts, and closes the store after the last call has ended.
func New(ctx context.Context, o Options) (*Server, error) {
	if err := o.Limits.Validate(); err != nil {
		return nil, err
	}
	all := &shared{
		gauges:   o.Gauges,
		models:   o.Models,
		budget:   o.Budget,
		limits:   o.Limits,
		work:     o.Work,
		policing: o.PolicyWork,
		turns:    o.Processor,
		imports:  harness.NewMemory(o.Limits.ImportMemory),
		clock:    o.Clock,
		newID:    o.NewID,
		count:    o.Count,
	}
	all.draining, all.drain = context.WithCancel(context.Background())
	all.settings.limit = cachedSessions
	all.policies.Store(&o.Policies)
	if _, err := all.tokenizer(nil); err != nil {
		return nil, err
	}
	if o.All == nil {
		o.All = o.Store
	}
	var err error
	all.total, err = all.quota(ctx, o.All, "max_store_sessions", o.Limits.MaxStoreSessions, "max_store_bytes", o.Limits.MaxStoreBytes)
	if err != nil {
		return nil, err
	}
	return all.For(ctx, o.Tenant)
}

// For returns a server for another tenant. Both share limits, policies and memory, and drain together.
func (s *shared) For(ctx context.Context, t Tenant) (*Server, error) {
	of := &Server{shared: s, store: t.Store, engine: t.Engine, logger: t.Logger, meter: t.Meter, scrub: t.Scrub}
	if of.meter == nil {
		of.meter = noMeter{}
	}
	of.transcripts.server = of
	of.shadows.init(of)
	of.compaction = compactions{server: of, hooks: t.Hooks, events: t.Lifecycle, tasks: t.Tasks, compactor: t.Compactor, summarizers: t.Summarizers}
	own, err := s.quota(ctx, t.Store, "max_sessions", s.limits.MaxSessions, "max_tenant_bytes", s.limits.MaxTenantBytes)
	of.quotas = slices.Concat(own, s.total)
	return of, err
}

// quota returns a Quota that counts the store's sessions; none if neither a limit nor a metric needs it.
func (s *shared) quota(ctx context.Context, store eventlog.Log, setting string, sessions uint64, byteSetting string, bytes uint64) (quotas, error) {
	if sessions == 0 && bytes == 0 && !s.count {
		return nil, nil
	}
	q := &Quota{
		store: store, clock: s.clock,
		sessions: bound{setting: setting, unit: "sessions", limit: sessions},
		bytes:    bound{setting: byteSetting, unit: "bytes", limit: bytes},
	}
	return quotas{q}, q.start(ctx)
}

// Quotas returns the tenant's quota and that of the store, as far as sessions are counted.
func (s *Server) Quotas() []*Quota { return s.quotas }

// SetPolicies replaces the named policies. Calls under way keep the old ones. It may be called from any goroutine.
func (s *shared) SetPolicies(p policy.Set) { s.policies.Store(&p) }

// Register adds the services to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	contextdv1.RegisterContextServiceServer(r, s)
	contextdv1.RegisterTranscriptServiceServer(r, &s.transcripts)
	contextdv1.RegisterCompactionServiceServer(r, &s.compaction)
}

// Drain ends the calls that would never end by themselves: those that follow a log, watch sessions, serve hooks or
// wait for tasks. Append streams end once what they received is acknowledged. It may be called more than once.
func (s *shared) Drain() { s.drain() }

// errDrained is the cause of a context that ended because the server drains.
var errDrained = errors.New("draining")

// untilDrained returns a context that ends with its parent or when the server
// begins to drain.
func (s *shared) untilDrained(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(s.draining, func() { cancel(errDrained) })
	return ctx, func() {
		stop()
		cancel(context.Canceled)
	}
}

type noMeter struct{}

func (noMeter) Appended(context.Context, time.Duration, int, uint64)               {}
func (noMeter) Assembling(context.Context, string)                                 {}
func (noMeter) Assembled(context.Context, time.Duration, *assemble.Context, error) {}
func (noMeter) Recorded(context.Context, records.Call)                             {}
func (noMeter) Shadowed(context.Context, Shadowed)                                 {}
