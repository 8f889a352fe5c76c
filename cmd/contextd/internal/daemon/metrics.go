package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/contextd/contextd/cmd/contextd/internal/transport"
)

// metricsServer serves /metrics and nothing else.
type metricsServer struct {
	listener net.Listener
	server   *http.Server
}

// maxScrapers is how many may be connected to the metrics; one more takes the place of
// the one that came first.
const maxScrapers = 32

func newMetricsServer(address string, handler http.Handler, logger *slog.Logger) (*metricsServer, error) {
	tcp, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("metrics_listen: %w", err)
	}
	l := transport.Limited(tcp, maxScrapers, logger)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", handler)
	return &metricsServer{l, &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
	}}, nil
}

func (m *metricsServer) serve() error {
	if err := m.server.Serve(m.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}

// close cuts scrapes off: there is nothing to finish.
func (m *metricsServer) close() error {
	err := m.server.Close()
	if lerr := m.listener.Close(); lerr != nil && !errors.Is(lerr, net.ErrClosed) {
		err = errors.Join(err, lerr)
	}
	return err
}
