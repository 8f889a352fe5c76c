package telemetry_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/contextd/contextd/cmd/contextd/internal/telemetry"
)

// collector receives exports over HTTP and gRPC.
type collector struct {
	endpoints *strings.Replacer
	mu        sync.Mutex
	seen      map[string]int
}

func newCollector(t *testing.T) *collector {
	c := &collector{seen: map[string]int{}}
	overHTTP := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { c.take(r.URL.Path) }))
	t.Cleanup(overHTTP.Close)
	overGRPC := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var message emptypb.Empty // the content is in its unknown fields
		if err := stream.RecvMsg(&message); err != nil {
			return err
		}
		method, _ := grpc.MethodFromServerStream(stream)
		c.take(map[string]string{
			"/opentelemetry.proto.collector.trace.v1.TraceService/Export":     "/v1/traces",
			"/opentelemetry.proto.collector.metrics.v1.MetricsService/Export": "/v1/metrics",
		}[method])
		return stream.SendMsg(&emptypb.Empty{})
	}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = overGRPC.Serve(listener) }()
	t.Cleanup(overGRPC.Stop)
	c.endpoints = strings.NewReplacer("ENDPOINT", overHTTP.URL, "GRPC", "http://"+listener.Addr().String())
	return c
}

func (c *collector) take(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[path]++
}

func (c *collector) count(path string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[path]
}

// TestEnvironment checks that telemetry is exported to a real endpoint exactly when the variables ask for it.
func TestEnvironment(t *testing.T) {
	tests := map[string]struct {
		env             map[string]string // ENDPOINT and GRPC are replaced by the collector's addresses
		traces, metrics bool
	}{
		"nothing set":       {nil, false, false},
		"an endpoint":       {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "ENDPOINT"}, true, true},
		"an exporter alone": {map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "ENDPOINT/v1/traces"}, true, false},
		"one turned off":    {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "ENDPOINT", "OTEL_METRICS_EXPORTER": "none"}, true, false},
		"over gRPC":         {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "GRPC", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, true, true},
		"over both": {map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": "ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "GRPC",
			"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "grpc",
		}, true, true},
		"all turned off": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "ENDPOINT", "OTEL_SDK_DISABLED": "true"}, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCollector(t)
			env := map[string]string{}
			for k, v := range test.env {
				env[k] = c.endpoints.Replace(v)
			}
			tel := setup(t, env)
			if observed := tel.ServerHandler() != nil; observed != (test.traces || test.metrics) {
				t.Errorf("calls are observed: %t", observed)
			}
			record(t, tel)
			if err := tel.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if got := c.count("/v1/traces") > 0; got != test.traces {
				t.Errorf("traces exported: %t", got)
			}
			if got := c.count("/v1/metrics") > 0; got != test.metrics {
				t.Errorf("metrics exported: %t", got)
			}
			http.DefaultClient.CloseIdleConnections()
		})
	}
}

func setup(t *testing.T, env map[string]string) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.Setup(t.Context(), telemetry.Options{LookupEnv: set(t, env)})
	if err != nil {
		t.Fatal(err)
	}
	return tel
}

// set sets variables, some of which the exporters read themselves.
func set(t *testing.T, env map[string]string) func(string) (string, bool) {
	for k, v := range env {
		t.Setenv(k, v)
	}
	return func(k string) (string, bool) {
		v, ok := env[k]
		return v, ok
	}
}

// TestConsole checks that recorded spans and metrics are printed.
func TestConsole(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	defer func() { os.Stdout = stdout }()
	tel := setup(t, map[string]string{"OTEL_TRACES_EXPORTER": "console", "OTEL_METRICS_EXPORTER": "console"})
	record(t, tel)
	if err := errors.Join(tel.Shutdown(t.Context()), w.Close()); err != nil {
		t.Fatal(err)
	}
	printed, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"contextd.append.batches", "ContextService/AssembleContext"} {
		if !bytes.Contains(printed, []byte(want)) {
			t.Errorf("%s is not printed:\n%s", want, printed)
		}
	}
}

// TestPrometheusExporter checks that metrics are served at the address in the variables, until a shutdown.
func TestPrometheusExporter(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"OTEL_METRICS_EXPORTER": "prometheus", "OTEL_EXPORTER_PROMETHEUS_HOST": host, "OTEL_EXPORTER_PROMETHEUS_PORT": port}
	if _, err := telemetry.Setup(t.Context(), telemetry.Options{LookupEnv: set(t, env)}); err == nil {
		t.Error("an address that is in use was taken")
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	tel := setup(t, env)
	record(t, tel)
	resp, err := http.Get("http://" + net.JoinHostPort(host, port) + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close(), tel.Shutdown(t.Context())); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(page, []byte("contextd_append_batches_total")) {
		t.Errorf("no metrics at /metrics:\n%s", page)
	}
	http.DefaultClient.CloseIdleConnections()
	if _, err := net.Dial("tcp", net.JoinHostPort(host, port)); err == nil {
		t.Error("it serves after it was shut down")
	}
}

// record records a batch and an assembly.
func record(t *testing.T, tel *telemetry.Telemetry) {
	t.Helper()
	m, err := tel.NewMeter()
	if err != nil {
		t.Fatal(err)
	}
	m.Appended(t.Context(), 0, 1, 1)
	assembled(t, tel, m, "s", made(), nil)
}

func TestBadEnvironment(t *testing.T) {
	for variable, want := range map[string]string{
		"OTEL_TRACES_EXPORTER":                `traces: OTEL_TRACES_EXPORTER must be one of otlp, console, none, not "pigeon"`,
		"OTEL_METRICS_EXPORTER":               `metrics: OTEL_METRICS_EXPORTER must be one of otlp, prometheus, console, none, not "pigeon"`,
		"OTEL_EXPORTER_OTLP_PROTOCOL":         `traces: OTEL_EXPORTER_OTLP_TRACES_PROTOCOL or OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or grpc, not "pigeon"`,
		"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": `metrics: OTEL_EXPORTER_OTLP_METRICS_PROTOCOL or OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or grpc, not "pigeon"`,
	} {
		t.Run(variable, func(t *testing.T) {
			env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
			env[variable] = "pigeon"
			_, err := telemetry.Setup(t.Context(), telemetry.Options{LookupEnv: set(t, env)})
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}
