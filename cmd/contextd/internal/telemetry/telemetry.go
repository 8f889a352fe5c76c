// Package telemetry sets up OpenTelemetry from the standard OTEL_* variables, and records what the daemon
// does. Unless a variable or a Prometheus address asks for it, nothing is exported and almost nothing is
// measured.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	promclient "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc/stats"
)

// scope names the instruments and spans of this daemon.
const scope = "github.com/contextd/contextd"

// Options say what to record.
type Options struct {
	Version string
	// Prometheus enables MetricsHandler.
	Prometheus bool
	LookupEnv  func(string) (string, bool)
	// Logger, if set, logs errors of exports.
	Logger *slog.Logger
	// SpanProcessor and MetricReader, if set, are used in addition to what the environment selects.
	SpanProcessor sdktrace.SpanProcessor
	MetricReader  sdkmetric.Reader
}

// Telemetry has the providers that Setup created.
type Telemetry struct {
	traces   trace.TracerProvider
	metrics  metric.MeterProvider
	registry *promclient.Registry
	enabled  bool
	causes   *causes
	tenant   string
	version  string
	genAI    bool
	shutdown []func(context.Context) error
}

// Setup creates the exporters that the environment and the options ask for.
func Setup(ctx context.Context, o Options) (_ *Telemetry, err error) {
	t := &Telemetry{traces: tracenoop.NewTracerProvider(), metrics: metricnoop.NewMeterProvider(), causes: &causes{of: map[string]trace.SpanContext{}}}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Shutdown(ctx))
		}
	}()
	if o.Logger != nil {
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Logger.Warn("there is trouble with telemetry", "error", err) }))
	}
	t.genAI, t.version = wantsGenAI(o.LookupEnv), o.Version
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName("contextd"), semconv.ServiceVersion(o.Version)),
		resource.WithFromEnv(),
	)
	if err != nil {
		return nil, fmt.Errorf("telemetry resource: %w", err)
	}
	if err := t.setupTraces(ctx, o, res); err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	if err := t.setupMetrics(ctx, o, res); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return t, nil
}

// Of returns a Telemetry for a tenant. Metrics and spans carry the tenant's name in their scope, and are
// never linked to those of other tenants.
func (t *Telemetry) Of(tenant string) *Telemetry {
	own := *t
	own.tenant, own.causes = tenant, &causes{of: map[string]trace.SpanContext{}}
	return &own
}

// meter is the meter of the daemon, or of a tenant.
func (t *Telemetry) meter() metric.Meter {
	// Without version and schema, Prometheus would get empty labels.
	return t.metrics.Meter(scope, metric.WithInstrumentationVersion(t.version), metric.WithSchemaURL(semconv.SchemaURL),
		metric.WithInstrumentationAttributes(t.scope()...))
}

func (t *Telemetry) tracer() trace.Tracer {
	return t.traces.Tracer(scope, trace.WithInstrumentationAttributes(t.scope()...))
}

func (t *Telemetry) scope() []attribute.KeyValue {
	if t.tenant == "" {
		return nil
	}
	return []attribute.KeyValue{attribute.String("tenant", t.tenant)}
}

func (t *Telemetry) setupTraces(ctx context.Context, o Options, res *resource.Resource) error {
	opts := []sdktrace.TracerProviderOption{sdktrace.WithResource(res)}
	if o.SpanProcessor != nil {
		opts = append(opts, sdktrace.WithSpanProcessor(o.SpanProcessor))
	}
	exporter, err := spanExporter(ctx, o.LookupEnv)
	if err != nil {
		return err
	}
	if exporter != nil {
		opts = append(opts, sdktrace.WithBatcher(exporter))
	}
	if len(opts) == 1 {
		return nil
	}
	provider := sdktrace.NewTracerProvider(opts...)
	t.traces, t.enabled = provider, true
	t.shutdown = append(t.shutdown, provider.Shutdown)
	return nil
}

func (t *Telemetry) setupMetrics(ctx context.Context, o Options, res *resource.Resource) error {
	opts := []sdkmetric.Option{sdkmetric.WithResource(res)}
	if o.MetricReader != nil {
		opts = append(opts, sdkmetric.WithReader(o.MetricReader))
	}
	asked, stop, err := metricReader(ctx, o.LookupEnv)
	if err != nil {
		return err
	}
	if asked != nil {
		opts = append(opts, sdkmetric.WithReader(asked))
		t.shutdown = append(t.shutdown, stop)
	}
	if o.Prometheus {
		t.registry = promclient.NewRegistry()
		t.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		reader, err := prometheus.New(prometheus.WithRegisterer(t.registry))
		if err != nil {
			return err
		}
		opts = append(opts, sdkmetric.WithReader(reader))
	}
	if len(opts) == 1 {
		return nil
	}
	provider := sdkmetric.NewMeterProvider(opts...)
	t.metrics, t.enabled = provider, true
	t.shutdown = append(t.shutdown, provider.Shutdown)
	return nil
}

// Enabled reports whether anything is recorded.
func (t *Telemetry) Enabled() bool { return t.enabled }

// ServerHandler returns a handler that observes every call; nil if nothing is recorded.
func (t *Telemetry) ServerHandler() stats.Handler {
	if !t.enabled {
		return nil
	}
	return otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(t.traces),
		otelgrpc.WithMeterProvider(t.metrics),
		// Nothing that is recorded uses baggage, and errors in a caller's baggage would be logged with its text.
		otelgrpc.WithPropagators(propagation.TraceContext{}),
	)
}

// MetricsHandler serves Prometheus; nil if that was not asked for.
func (t *Telemetry) MetricsHandler() http.Handler {
	if t.registry == nil {
		return nil
	}
	// Only OpenMetrics has exemplars, which name the trace of a call.
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// Shutdown exports what is pending and stops.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	var errs []error
	for _, stop := range t.shutdown {
		errs = append(errs, stop(ctx))
	}
	t.shutdown = nil
	return errors.Join(errs...)
}
