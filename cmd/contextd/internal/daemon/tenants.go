package daemon

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/auth"
	"github.com/contextd/contextd/cmd/contextd/internal/server"
	"github.com/contextd/contextd/cmd/contextd/internal/telemetry"
	"github.com/contextd/contextd/internal/guard"
	"github.com/contextd/contextd/internal/lifecycle"
	"github.com/contextd/contextd/internal/log/tenantlog"
	"github.com/contextd/contextd/internal/scrub"
)

// tenant has the parts that serve the sessions of one tenant. Parts with access to sessions are not shared.
type tenant struct {
	services  services
	service   *server.Server
	summaries *summaries
	meter     *telemetry.Meter
}

// services are the implementations of the API's services, by the service's name.
type services map[string]any

// RegisterService implements grpc.ServiceRegistrar.
func (s services) RegisterService(desc *grpc.ServiceDesc, impl any) { s[desc.ServiceName] = impl }

// tenants are the tenants that have made a call, and "", which exists from the start.
type tenants struct {
	build func(name string) (*tenant, error)
	// resume makes a tenant continue compactions and summaries that an earlier run of the daemon began.
	resume bool
	logger *slog.Logger
	// ctx ends when the daemon stops its background work. Background work and building are counted; neither begins
	// after ctx has ended.
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu  sync.Mutex
	all map[string]func() (*tenant, error)
	// made are the tenants of all that could be built.
	made []*tenant
}

func newTenants(build func(string) (*tenant, error), resume bool, logger *slog.Logger) *tenants {
	t := &tenants{build: build, resume: resume, logger: logger, all: map[string]func() (*tenant, error){}}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// get returns a tenant, which is built if this is its first call. Calls of other tenants do not wait for
// that.
func (t *tenants) get(name string) (*tenant, error) {
	get, err := t.find(name)
	if err != nil {
		return nil, err
	}
	return get()
}

func (t *tenants) find(name string) (func() (*tenant, error), error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	get, ok := t.all[name]
	if !ok && t.ctx.Err() != nil {
		return nil, apierr.ErrDraining
	}
	if !ok {
		t.work.Add(1)
		get = sync.OnceValues(func() (*tenant, error) {
			defer t.work.Done()
			return t.make(name)
		})
		t.all[name] = get
	}
	return get, nil
}

func (t *tenants) make(name string) (*tenant, error) {
	made, err := t.build(name)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		delete(t.all, name) // the next call may try again
		return nil, err
	}
	t.made = append(t.made, made)
	if t.resume {
		t.work.Go(func() {
			// If this fails, what was begun is begun again when it is due.
			_ = guard.Run(t.logger, "resuming summaries", func() error {
				made.summaries.resume(t.ctx)
				return nil
			})
		})
	}
	return made, nil
}

// each returns all tenants that exist now.
func (t *tenants) each() []*tenant {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.made[:len(t.made):len(t.made)]
}

// everybodys are the services that have no access to sessions.
var everybodys = []string{"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"}

// implementation returns the implementation of a service for the caller's tenant; nil for a service that exists once
// for all tenants. Of these, callers of a tenant may only use the services that have no access to sessions.
func (t *tenants) implementation(ctx context.Context, service string) (any, error) {
	who := auth.Of(ctx)
	of, err := t.get(who.Tenant)
	if err != nil {
		return nil, err
	}
	own := of.services[service]
	if own == nil && who.Tenant != "" && !slices.Contains(everybodys, service) {
		return nil, &auth.DeniedError{Reason: service + " is about the sessions of all tenants, and not for callers of one"}
	}
	return own, nil
}

// failed counts a call that ended in an error.
func (t *tenants) failed(ctx context.Context, reason, setting string) {
	of, err := t.get(auth.Of(ctx).Tenant)
	if err != nil {
		of, err = t.get("") // the tenant cannot be built, or the daemon stops
	}
	if err == nil {
		of.meter.Failed(ctx, reason, setting)
	}
}

// stop stops background work, and returns when it has ended.
func (t *tenants) stop() {
	t.mu.Lock()
	t.cancel()
	t.mu.Unlock()
	t.work.Wait()
}

// shadowsEnd is for how long the queued shadows may still be computed when the daemon stops. Few are queued, and a
// command that made a context has only that one to wait for.
const shadowsEnd = 500 * time.Millisecond

// close stops the work of all tenants. Nothing may be served any more.
func (t *tenants) close() {
	t.stop()
	ctx, cancel := context.WithTimeout(context.Background(), shadowsEnd)
	defer cancel()
	for _, of := range t.each() {
		of.service.StopShadows(ctx)
		of.summaries.close()
	}
}

// buildTenant builds the parts that serve the sessions of a tenant.
func (d *Daemon) buildTenant(ctx context.Context, o Options, name string) (_ *tenant, err error) {
	t := &tenant{services: services{}}
	store, recorder, logger := tenantlog.Of(d.store, name), d.telemetry, o.Logger
	if name != "" {
		recorder, logger = recorder.Of(name), logger.With("tenant", name)
	}
	if t.meter, err = recorder.NewMeter(); err != nil {
		return nil, err
	}
	var scrubber *scrub.Scrubber
	if o.Config.ScrubAppends {
		if scrubber, err = o.Config.Scrubber(t.meter.Scrubbed); err != nil {
			return nil, err
		}
	}
	observe, err := recorder.NewLifecycleMeter()
	if err != nil {
		return nil, err
	}
	journal := lifecycle.NewJournal(store, lifecycle.NewBus(lifecycle.BusOptions{Observe: observe}), o.Clock)
	engine := d.engine.Over(store, name, journal)
	if t.summaries, err = d.buildSummaries(o, recorder, store, engine, journal, logger); err != nil {
		return nil, err
	}
	own := server.Tenant{
		Store: store, Engine: engine, Logger: logger, Meter: t.meter, Scrub: scrubber,
		Hooks: t.summaries.hooks, Lifecycle: journal, Tasks: t.summaries.queue,
		Compactor: t.summaries.compactor, Summarizers: t.summaries.registry,
	}
	var service *server.Server
	if name == "" {
		service, err = d.buildService(ctx, o, own)
		d.service = service
	} else {
		service, err = d.service.For(ctx, own)
	}
	if err != nil {
		t.summaries.close()
		return nil, err
	}
	t.service = service
	service.Register(t.services)
	if quotas := service.Quotas(); recorder.Enabled() && len(quotas) > 0 {
		err = recorder.ObserveSessions(quotas[0].Sessions, quotas[0].Bytes)
	}
	return t, err
}
