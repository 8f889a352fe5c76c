package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	promclient "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The variables are those of OpenTelemetry's specification. This package reads the ones that choose an
// exporter. The exporters read endpoints, headers, certificates, timeouts and intervals themselves.
const (
	otlp     = "otlp"
	console  = "console"
	overHTTP = "http/protobuf"
	overGRPC = "grpc"
)

// environment looks up variables; it may be nil.
type environment func(string) (string, bool)

// first is the value of the first variable that is set and not empty.
func (env environment) first(names ...string) string {
	for _, name := range names {
		if env == nil {
			break
		}
		if value, ok := env(name); ok && value != "" {
			return value
		}
	}
	return ""
}

// exporter is the name of the exporter for a signal, TRACES or METRICS; empty for none. Unlike in the
// specification, which would send to localhost, nothing is exported unless a variable is set.
func (env environment) exporter(signal string) string {
	if strings.EqualFold(env.first("OTEL_SDK_DISABLED"), "true") {
		return ""
	}
	name := env.first("OTEL_" + signal + "_EXPORTER")
	if name == "" && env.first("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != "" {
		return otlp
	}
	if name == "none" {
		return ""
	}
	return name
}

// protocol is the OTLP protocol of a signal.
func (env environment) protocol(signal string) (string, error) {
	names := []string{"OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"}
	switch p := env.first(names...); p {
	case "":
		return overHTTP, nil
	case overHTTP, overGRPC:
		return p, nil
	default:
		return "", fmt.Errorf("%s must be %s or %s, not %q", strings.Join(names, " or "), overHTTP, overGRPC, p)
	}
}

func (env environment) unknown(signal string, known ...string) error {
	variable := "OTEL_" + signal + "_EXPORTER"
	return fmt.Errorf("%s must be one of %s, not %q", variable, strings.Join(slices.Concat(known, []string{"none"}), ", "), env.first(variable))
}

// spanExporter returns the exporter that the environment selects; nil if none.
func spanExporter(ctx context.Context, env environment) (sdktrace.SpanExporter, error) {
	switch env.exporter("TRACES") {
	case "":
		return nil, nil
	case console:
		return stdouttrace.New(stdouttrace.WithWriter(os.Stdout))
	case otlp:
		protocol, err := env.protocol("TRACES")
		switch {
		case err != nil:
			return nil, err
		case protocol == overGRPC:
			return otlptracegrpc.New(ctx)
		default:
			return otlptracehttp.New(ctx)
		}
	default:
		return nil, env.unknown("TRACES", otlp, console)
	}
}

// metricReader returns the reader that the environment selects; nil if none. stop ends what it started
// besides.
func metricReader(ctx context.Context, env environment) (_ sdkmetric.Reader, stop func(context.Context) error, err error) {
	stop = func(context.Context) error { return nil }
	var exporter sdkmetric.Exporter
	switch env.exporter("METRICS") {
	case "":
		return nil, stop, nil
	case "prometheus":
		return prometheusReader(ctx, env)
	case console:
		exporter, err = stdoutmetric.New(stdoutmetric.WithWriter(os.Stdout))
	case otlp:
		var protocol string
		switch protocol, err = env.protocol("METRICS"); {
		case err != nil:
		case protocol == overGRPC:
			exporter, err = otlpmetricgrpc.New(ctx)
		default:
			exporter, err = otlpmetrichttp.New(ctx)
		}
	default:
		err = env.unknown("METRICS", otlp, "prometheus", console)
	}
	if err != nil {
		return nil, stop, err
	}
	return sdkmetric.NewPeriodicReader(exporter), stop, nil
}

// prometheusReader serves these metrics at an address of its own. The daemon's --metrics-listen has more
// metrics.
func prometheusReader(ctx context.Context, env environment) (_ sdkmetric.Reader, stop func(context.Context) error, err error) {
	host := cmp.Or(env.first("OTEL_EXPORTER_PROMETHEUS_HOST"), "localhost")
	port := cmp.Or(env.first("OTEL_EXPORTER_PROMETHEUS_PORT"), "9464")
	registry := promclient.NewRegistry()
	reader, err := prometheus.New(prometheus.WithRegisterer(registry))
	if err != nil {
		return nil, nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry}))
	server := &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			otel.Handle(fmt.Errorf("serve Prometheus: %w", err))
		}
	}()
	return reader, server.Shutdown, nil
}
