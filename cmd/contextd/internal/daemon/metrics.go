package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/inspect"
	"github.com/contextd/contextd/cmd/contextd/internal/transport"
	"github.com/contextd/contextd/internal/guard"
	eventlog "github.com/contextd/contextd/internal/log"
)

// metricsServer serves metrics, probes and, if configured, profiles to operators, without authentication. It runs from
// before the store is opened until after it is closed. So its probes answer "alive, not ready" while either takes long.
type metricsServer struct {
	listener net.Listener
	server   *http.Server
	ended    chan error // is sent why it ended
}

// maxScrapers bounds the connections to the metrics; one more replaces the oldest.
const maxScrapers = 32

func (d *Daemon) newMetricsServer(c config.Config, logger *slog.Logger) (*metricsServer, error) {
	tcp, err := net.Listen("tcp", c.MetricsListen)
	if err != nil {
		return nil, fmt.Errorf("metrics_listen: %w", err)
	}
	l := transport.Limited(tcp, limitsAside(maxScrapers), logger)
	mux := http.NewServeMux()
	metrics := d.telemetry.MetricsHandler()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if !d.open.Load() {
			http.Error(w, "the store is not open", http.StatusServiceUnavailable)
			return
		}
		metrics.ServeHTTP(w, r)
	})
	// A restart helps if the store has failed, but not if it cannot be reached or is still being opened: then the
	// daemon is alive.
	mux.Handle("GET /livez", probe(func(context.Context) bool { return !d.open.Load() || !failed(d.store.Healthy()) }))
	mux.Handle("GET /readyz", probe(func(ctx context.Context) bool {
		answer, err := d.health.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		return err == nil && answer.GetStatus() == serving
	}))
	if c.Pprof {
		mux.Handle("GET /debug/pprof/", profile(pprof.Index))
		mux.Handle("GET /debug/pprof/profile", profile(pprof.Profile))
		mux.Handle("GET /debug/pprof/trace", profile(pprof.Trace))
	}
	m := &metricsServer{l, &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
	}, make(chan error, 1)}
	logger.Info("serving metrics", "address", l.Addr().String())
	go func() {
		defer close(m.ended)
		m.ended <- guard.Run(logger, "metrics", m.serve)
	}()
	return m, nil
}

// profile answers only requests to names of this machine. Otherwise a web site could let its own name resolve to this
// machine's address (DNS rebinding), and read profiles through a browser.
func profile(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !inspect.Local(r.Host) {
			http.Error(w, "profiles are served to localhost and loopback addresses", http.StatusMisdirectedRequest)
			return
		}
		next(w, r)
	}
}

// failed reports whether an unhealthy store will stay so.
func failed(err error) bool {
	away, ok := errors.AsType[*eventlog.UnavailableError](err)
	return err != nil && (!ok || !away.Passing)
}

// probe answers 200 or 503.
func probe(well func(context.Context) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !well(r.Context()) {
			http.Error(w, "not well; the daemon's log says why", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "well\n") // it fails if nobody waits for it
	}
}

func (m *metricsServer) serve() error {
	if err := m.server.Serve(m.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}

// close ends scrapes at once.
func (m *metricsServer) close() error {
	err := m.server.Close()
	if lerr := m.listener.Close(); lerr != nil && !errors.Is(lerr, net.ErrClosed) {
		err = errors.Join(err, lerr)
	}
	return errors.Join(err, <-m.ended)
}
