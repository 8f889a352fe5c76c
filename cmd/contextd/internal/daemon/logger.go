package daemon

import (
	"io"
	"log/slog"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
)

// NewLogger returns the logger that the configuration asks for.
func NewLogger(c config.Config, w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == config.LogJSON {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
