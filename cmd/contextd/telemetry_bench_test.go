package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// BenchmarkTelemetry assembles a warm context of 1,000 events, alternately by a program that exports traces
// and metrics and by one that does not, and compares the medians.
func BenchmarkTelemetry(b *testing.B) {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer collector.Close()
	var clients []contextdv1.ContextServiceClient
	for _, env := range [][]string{nil, {"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_METRIC_EXPORT_INTERVAL=1000"}} {
		serve := exec.Command(build(b), append(faultArgs(filepath.Join(b.TempDir(), "data")), "--log-level=info")...)
		serve.Env = append(os.Environ(), env...)
		client := contextdv1.NewContextServiceClient(spawn(b, serve).conn)
		for range 10 {
			appendTurns(b, client, 50)
		}
		clients = append(clients, client)
	}
	took := make([][]time.Duration, len(clients))
	for n := 0; b.Loop(); n++ {
		for k := range clients {
			i := (k + n) % len(clients) // alternate who is first, since the second finds warmer caches
			client := clients[i]
			appendTurns(b, client, 1)
			began := time.Now()
			if _, err := assemble(b.Context(), client, &contextdv1.AssembleContextRequest{SessionId: "s", Budget: &contextdv1.Budget{MaxTokens: 32_768, Tokenizer: "heuristic"}}); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	var median [2]float64
	for i, all := range took {
		slices.Sort(all)
		median[i] = float64(all[len(all)/2].Microseconds())
	}
	b.ReportMetric(median[0], "µs-off")
	b.ReportMetric(median[1], "µs-on")
	b.ReportMetric(100*(median[1]/median[0]-1), "%")
}

func appendTurns(b *testing.B, client contextdv1.ContextServiceClient, n int) {
	b.Helper()
	req := &contextdv1.AppendEventsRequest{SessionId: "s"}
	for range n {
		answer := said(words(400))
		answer.GetMessage().Role = contextdv1.Role_ROLE_ASSISTANT
		req.Events = append(req.Events, said(words(400)), answer)
	}
	if _, err := client.AppendEvents(b.Context(), req); err != nil {
		b.Fatal(err)
	}
}
