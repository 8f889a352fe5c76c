// OpenTelemetry's exporters: OTLP over gRPC and HTTP, and the console.
package main

import (
	"context"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

func init() {
	ctx := context.Background()
	metricsGRPC, _ := otlpmetricgrpc.New(ctx)
	metricsHTTP, _ := otlpmetrichttp.New(ctx)
	metricsText, _ := stdoutmetric.New()
	sdkmetric.NewMeterProvider(
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metricsGRPC)), sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metricsHTTP)),
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metricsText)),
	)
	tracesGRPC, _ := otlptracegrpc.New(ctx)
	tracesHTTP, _ := otlptracehttp.New(ctx)
	tracesText, _ := stdouttrace.New()
	sdktrace.NewTracerProvider(sdktrace.WithBatcher(tracesGRPC), sdktrace.WithBatcher(tracesHTTP), sdktrace.WithBatcher(tracesText))
}
