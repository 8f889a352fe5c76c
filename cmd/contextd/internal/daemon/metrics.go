package daemon

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// metricsServer serves /metrics and nothing else.
type metricsServer struct {
	listener net.Listener
	server   *http.Server
}

func newMetricsServer(address string, handler http.Handler) (*metricsServer, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("metrics_listen: %w", err)
	}
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
