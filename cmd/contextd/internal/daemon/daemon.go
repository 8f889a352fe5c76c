// Package daemon builds a daemon from a configuration, runs it, and stops it in a fixed order. Only building
// may fail because of the configuration.
package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	grpchealth "google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/contextd/contextd/cmd/contextd/internal/auth"
	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/gauges"
	"github.com/contextd/contextd/cmd/contextd/internal/server"
	"github.com/contextd/contextd/cmd/contextd/internal/telemetry"
	"github.com/contextd/contextd/cmd/contextd/internal/transport"
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/fair"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/memory"
	adminv1 "github.com/contextd/contextd/proto/contextd/admin/v1"
)

// Options say how to build a daemon.
type Options struct {
	Config config.Config
	Logger *slog.Logger
	// Listeners are served in addition to the configured ones, and closed with them. Their clients have the identity
	// Caller.
	Listeners []net.Listener
	Caller    auth.Identity
	// Inherited are the configured listeners if another process opened them, as with socket activation.
	Inherited []net.Listener
	// Clock is the wall clock if nil.
	Clock func() time.Time
	// LookupEnv returns the OTEL_* variables; nil is an empty environment.
	LookupEnv func(string) (string, bool)
	Version   string
	// Reload reads the configuration again, on each signal of Reloads. Both are nil where
	// nothing is reloaded.
	Reload  func() (config.Config, error)
	Reloads <-chan os.Signal
	// Lazy opens the tokenizer when the first call needs it, instead of before the daemon is ready. It is for
	// processes that make few calls.
	Lazy bool
	// ReadOnly opens the disk store only to be read.
	ReadOnly bool
}

// Daemon is a daemon that Build returned. Call Run once; it also releases what Build opened.
type Daemon struct {
	logger    *slog.Logger
	stopAfter time.Duration
	lazy      bool

	telemetry *telemetry.Telemetry
	metrics   *metricsServer // nil if there is no endpoint
	inspector *inspector     // nil if there is none
	store     eventlog.Store
	disk      *disklog.Store // the store, if it is on disk
	full      func() bool    // whether what the store is on is full; nil if it cannot be
	syncs     *syncWatch     // nil if it is not
	backends  backends
	engine    *assemble.Engine // shares its memory with the engines of tenants
	service   *server.Server   // that of no tenant, and what all have in common
	tenants   *tenants
	auth      *auth.Authenticator
	grpc      *transport.Server
	health    *grpchealth.Server
	listeners []net.Listener
	bounds    transport.Bounds
	work      *memory.Budget
	policies  *memory.Budget
	processor *fair.Turns
	reloader  reloader
	// open is set between Build and the end of background work: metrics are collected, and the store knows its health.
	open atomic.Bool
	// sick wakes the goroutine that checks the store's health.
	sick chan struct{}
}

// ConfigurationError reports that something that a setting names, such as a file or a variable, is missing or wrong.
type ConfigurationError struct{ error }

func (e *ConfigurationError) Unwrap() error { return e.error }

// Build opens the store and the listeners, and builds the parts between them. After an error nothing stays
// open.
func Build(ctx context.Context, o Options) (_ *Daemon, err error) {
	d := &Daemon{logger: o.Logger, stopAfter: o.Config.ShutdownTimeout, lazy: o.Lazy, sick: make(chan struct{}, 1)}
	o.Logger.InfoContext(ctx, "starting", "version", o.Version, "store", o.Config.Store, "data_dir", o.Config.DataDir)
	if !o.Lazy {
		if err := openFiles().check(); err != nil {
			return nil, err
		}
	}
	for _, l := range o.Listeners {
		own := transport.Limited(l, transport.ConnectionLimits{Max: o.Config.MaxConnections, MaxPerClient: o.Config.MaxConnections}, o.Logger)
		own.Credentials = auth.InProcess(o.Caller)
		d.listeners = append(d.listeners, own)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.release())
		}
	}()
	if o.Clock == nil {
		o.Clock = time.Now
	}
	d.health = grpchealth.NewServer()
	d.health.SetServingStatus("", notServing)
	d.telemetry, err = telemetry.Setup(ctx, telemetry.Options{
		Version: o.Version, Prometheus: o.Config.MetricsListen != "", LookupEnv: o.LookupEnv, Logger: o.Logger,
	})
	if err != nil {
		return nil, &ConfigurationError{err}
	}
	if o.Config.MetricsListen != "" {
		if d.metrics, err = d.newMetricsServer(o.Config, o.Logger); err != nil {
			return nil, err
		}
	}
	var written time.Time
	if o.Config.Store == config.StoreDisk {
		written = disklog.Written(o.Config.DataDir)
	}
	if d.store, err = d.openStore(ctx, o); err != nil {
		return nil, err
	}
	if d.auth, err = auth.New(o.Config.Auth, o.Logger); err != nil {
		return nil, &ConfigurationError{err}
	}
	d.buildBudgets(o.Config)
	o.Clock = notSetBack(o.Clock, written, o.Logger)
	if err := d.buildTenants(ctx, o); err != nil {
		return nil, err
	}
	d.reloader = reloader{o.Reload, o.Reloads, o.Config, d.service.SetPolicies, d.auth.Reload, o.Logger}
	if err := d.buildGRPC(o); err != nil {
		return nil, err
	}
	opened, err := listen(o.Config, o.Inherited, d.auth, o.Logger)
	for _, l := range opened {
		d.listeners = append(d.listeners, l)
	}
	if err != nil {
		return nil, err
	}
	if err := d.observe(o.Config, opened); err != nil {
		return nil, err
	}
	if o.Config.InspectListen != "" {
		if d.inspector, err = d.newInspector(o); err != nil {
			return nil, err
		}
	}
	d.open.Store(true)
	return d, nil
}

// busyWait is how long a call waits until others release memory or the session, before it is refused.
const busyWait = 10 * time.Second

// smallRequestMemory holds requests of up to 64 KiB; it is enough for the greatest number of calls.
const smallRequestMemory = 16 << 20

// policyShare divides the work memory: large policies may take that much in addition to it.
const policyShare = 3

func (d *Daemon) buildBudgets(c config.Config) {
	d.work = memory.NewBudget("work_memory", c.WorkMemory, busyWait)
	d.policies = memory.NewBudget("work_memory", c.WorkMemory/policyShare, busyWait)
	limit := mostAssemblies(c)
	d.processor = fair.NewTurns(fair.TurnsOptions{
		Limit: limit, PerClient: cmp.Or(c.MaxClientAssemblies, 2*limit),
		Setting: "max_assemblies", ClientSetting: "max_client_assemblies", Wait: busyWait, Clock: time.Now,
	})
	d.bounds = transport.Bounds{
		Calls:           transport.Calls{Max: c.MaxCalls, MaxPerClient: c.MaxClientCalls, Rate: c.MaxCallRate, RatePerClient: c.MaxClientCallRate},
		Client:          func(ctx context.Context) string { return auth.Of(ctx).Client() },
		Processor:       d.processor,
		SmallRequests:   memory.NewBudget("request_memory", smallRequestMemory, busyWait),
		LargeRequests:   memory.NewBudget("request_memory", c.RequestMemory, busyWait),
		DecodedRequests: memory.NewBudget("request_memory", c.RequestMemory, busyWait),
		Answers:         memory.NewBudget("answer_memory", c.AnswerMemory, busyWait),
		ReceiveTimeout:  c.ReceiveTimeout,
		SendTimeout:     c.SendTimeout,
	}
}

func mostAssemblies(c config.Config) uint64 {
	return cmp.Or(c.MaxAssemblies, uint64(runtime.GOMAXPROCS(0)))
}

// budgets returns the memory budgets by their names in the metrics.
func (d *Daemon) budgets() map[string]*memory.Budget {
	return map[string]*memory.Budget{
		"requests": d.bounds.LargeRequests, "small_requests": d.bounds.SmallRequests, "decoded_requests": d.bounds.DecodedRequests, "answers": d.bounds.Answers, "work": d.work, "policies": d.policies,
	}
}

// observe registers metrics of connections, memory and other resources that all tenants share.
func (d *Daemon) observe(c config.Config, listeners []*transport.Listener) error {
	budgets := d.budgets()
	limits := map[string]telemetry.Limit{
		"max_calls":      {Max: c.MaxCalls, Used: d.grpc.Calls},
		"max_assemblies": {Max: mostAssemblies(c), Used: d.processor.Running},
		"cache_sessions": {Max: c.CacheSessions, Used: func() int64 { sessions, _ := d.engine.Cached(); return sessions }},
		"cache_memory":   {Max: c.CacheMemory, Used: func() int64 { _, bytes := d.engine.Cached(); return bytes }},
	}
	if all := d.service.Quotas(); len(all) == 2 {
		limits["max_store_sessions"] = telemetry.Limit{Max: c.Limits.MaxStoreSessions, Used: all[1].Sessions}
		limits["max_store_bytes"] = telemetry.Limit{Max: c.Limits.MaxStoreBytes, Used: all[1].Bytes}
	}
	return errors.Join(
		d.telemetry.ObserveConnections(func() (c transport.ConnectionCounts) {
			for _, l := range listeners {
				n := l.Counts()
				c.Open, c.Accepted, c.Refused, c.Evicted = c.Open+n.Open, c.Accepted+n.Accepted, c.Refused+n.Refused, c.Evicted+n.Evicted
			}
			return c
		}),
		d.telemetry.ObserveMemory(budgets),
		d.telemetry.ObserveLimits(limits),
		d.telemetry.ObserveCertificate(d.auth.Certificate),
	)
}

// buildTenants builds the parts that tenants share, and the services for sessions of no tenant.
func (d *Daemon) buildTenants(ctx context.Context, o Options) error {
	models, err := o.Config.Registry()
	if err != nil {
		return err
	}
	if d.backends, err = openBackends(o); err != nil {
		return err
	}
	scrubber, err := o.Config.Scrubber(nil)
	if err != nil {
		return err
	}
	d.engine = assemble.New(d.store, assemble.Options{
		Gauges:        gauges.Open,
		Models:        models,
		Clock:         o.Clock,
		CacheSessions: int(o.Config.CacheSessions),
		CacheBytes:    o.Config.CacheMemory,
		SessionWait:   busyWait,
		Work:          d.work,
		Scrub:         scrubber,
		Processor:     d.processor,
	})
	d.tenants = newTenants(func(name string) (*tenant, error) { return d.buildTenant(context.WithoutCancel(ctx), o, name) }, !o.ReadOnly, o.Logger)
	if _, err := d.tenants.get(""); err != nil {
		return err
	}
	return errors.Join(d.telemetry.ObserveHealth(d.parts()), d.telemetry.ObservePanics())
}

func (d *Daemon) buildService(ctx context.Context, o Options, none server.Tenant) (*server.Server, error) {
	models, err := o.Config.Registry()
	if err != nil {
		return nil, err
	}
	policies, err := o.Config.PolicySet()
	if err != nil {
		return nil, err
	}
	return server.New(ctx, server.Options{
		Tenant:   none,
		Gauges:   gauges.Open,
		Models:   models,
		Policies: policies,
		Budget:   o.Config.Budget(),
		Limits:   o.Config.Limits,
		All:      d.store,
		// If others write to the store, all sessions must be read again and again to count them, which only a limit
		// justifies.
		Count: d.telemetry.Enabled() && (d.store.Capabilities().OneWriter || o.Config.Limits.BoundStore()),
		Work:  d.work,

		PolicyWork: d.policies,
		Processor:  d.processor,
		Clock:      o.Clock,
		NewID:      newID,
	})
}

// newID makes a UUIDv7, so that ids sort by the time when they were made.
func newID() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("make a UUID: %w", err)
	}
	return id.String(), nil
}

func (d *Daemon) buildGRPC(o Options) error {
	var err error
	d.grpc, err = transport.NewServer(transport.Options{
		OnlyFaults:      o.Lazy, // the command reports what its calls end in
		Logger:          o.Logger,
		MaxMessageBytes: o.Config.Limits.MaxBatchBytes,
		MaxStreams:      uint32(o.Config.MaxStreams),
		Unavailable:     d.wake,
		Failed:          d.tenants.failed,
		Telemetry:       d.telemetry.ServerHandler(),
		Bounds:          d.bounds,
		Authenticate:    d.auth.Authenticate,
		Implementation:  d.tenants.implementation,
		ConnectionIdle:  o.Config.ConnectionIdleTimeout,
		ConnectionAge:   d.auth.ConnectionAge(),
	})
	if err != nil {
		return err
	}
	d.service.Register(d.grpc)
	adminv1.RegisterAdminServiceServer(d.grpc, &admin{store: d.disk, clock: o.Clock, logger: o.Logger})
	grpc_health_v1.RegisterHealthServer(d.grpc, d.health)
	reflection.Register(d.grpc)
	d.setServing(notServing)
	return nil
}

// Addresses returns the addresses of the daemon's listeners, as gRPC targets.
func (d *Daemon) Addresses() []string {
	var out []string
	for _, l := range d.listeners {
		out = append(out, target(l.Addr()))
	}
	return out
}

// eraseTime is how long a command waits at its end for deleted sessions to be erased.
const eraseTime = time.Minute

// flushTime bounds the last export of telemetry when the daemon stops.
const flushTime = 5 * time.Second

// release closes what Build opened, after serving has ended.
func (d *Daemon) release() error {
	var errs []error
	if d.grpc != nil {
		// gRPC's workers run from the start, even if nothing was served.
		d.grpc.Stop()
	}
	for _, l := range d.listeners {
		// Listeners that were served are closed already.
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if d.auth != nil {
		d.auth.Close()
	}
	if d.tenants != nil {
		d.tenants.close()
	}
	errs = append(errs, d.backends.close())
	if d.store != nil {
		if d.lazy {
			// It may be long until the directory is opened again, so erase deleted sessions now. If that fails, the log says
			// so.
			patience, cancel := context.WithTimeout(context.Background(), eraseTime)
			_ = d.store.WaitErased(patience, 0)
			cancel()
		}
		if err := d.store.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close the store: %w", err))
		}
	}
	if d.inspector != nil {
		errs = append(errs, d.inspector.close())
	}
	if d.telemetry != nil {
		flush, cancel := context.WithTimeout(context.Background(), flushTime)
		defer cancel()
		if err := d.telemetry.Shutdown(flush); err != nil {
			// The work is done: a collector that cannot be reached fails neither a command nor a stop.
			d.logger.WarnContext(flush, "the last telemetry was not exported", "error", err)
		}
	}
	if d.metrics != nil {
		errs = append(errs, d.metrics.close())
	}
	return errors.Join(errs...)
}
