// OpenTelemetry and Prometheus.
package main

import (
	"context"
	"fmt"

	promclient "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

func init() {
	found, _ := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithFromEnv())
	registry := promclient.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, _ := prometheus.New(prometheus.WithRegisterer(registry))
	metrics := sdkmetric.NewMeterProvider(sdkmetric.WithResource(found), sdkmetric.WithReader(reader))
	traces := sdktrace.NewTracerProvider(sdktrace.WithResource(found))
	fmt.Println(
		otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(traces), otelgrpc.WithMeterProvider(metrics)),
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}),
	)
}
