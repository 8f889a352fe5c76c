package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/internal/quote"
)

// longestValue is the most bytes of one value in a line of the log. The stack of a panic fits.
const longestValue = 16 << 10

// NewLogger returns the logger that the configuration asks for. Control characters in values are escaped, so that a value
// that others wrote can neither end its line nor control a terminal.
func NewLogger(c config.Config, w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: c.LogLevel, ReplaceAttr: plain}
	if w = (escaped{w}); c.LogFormat == config.LogJSON {
		return slog.New(traced{slog.NewJSONHandler(w, opts)})
	}
	return slog.New(traced{slog.NewTextHandler(w, opts)})
}

// plain replaces an error by its text, since a text handler would add the stack that errors of the disk store's database
// have. It cuts long texts.
func plain(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok {
		a.Value = slog.StringValue(err.Error())
	}
	if a.Value.Kind() == slog.KindString && len(a.Value.String()) > longestValue {
		text := a.Value.String()[:longestValue]
		a.Value = slog.StringValue(strings.ToValidUTF8(text, "") + "…")
	}
	return a
}

// escaped escapes characters that the encoders of lines do not: for JSON control characters and text directions beyond
// ASCII, for text lines DEL.
type escaped struct{ io.Writer }

func (e escaped) Write(line []byte) (int, error) {
	if _, err := io.WriteString(e.Writer, quote.Escape(string(bytes.TrimSuffix(line, []byte("\n"))))+"\n"); err != nil {
		return 0, err
	}
	return len(line), nil
}

// traced adds the trace and span ids to each line.
type traced struct{ slog.Handler }

func (h traced) Handle(ctx context.Context, r slog.Record) error {
	if of := trace.SpanContextFromContext(ctx); of.IsValid() {
		r.AddAttrs(slog.String("trace_id", of.TraceID().String()), slog.String("span_id", of.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{h.Handler.WithAttrs(attrs)} }

func (h traced) WithGroup(name string) slog.Handler { return traced{h.Handler.WithGroup(name)} }

// logBacklog is how many lines may wait to be written; logFlush is how long Close waits for them.
const (
	logBacklog = 1024
	logFlush   = time.Second
)

// LogWriter writes lines and never blocks the caller: if nobody reads the log, lines are dropped and counted.
type LogWriter struct {
	to    io.Writer
	lines chan []byte
	lost  atomic.Uint64
	ended chan struct{}

	mu     sync.RWMutex
	closed bool
}

// NewLogWriter returns a writer that must be closed.
func NewLogWriter(to io.Writer) *LogWriter {
	w := &LogWriter{to: to, lines: make(chan []byte, logBacklog), ended: make(chan struct{})}
	go w.run()
	return w
}

// Write implements io.Writer; it never fails.
func (w *LogWriter) Write(line []byte) (int, error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if !w.closed {
		select {
		case w.lines <- append([]byte(nil), line...):
		default:
			w.lost.Add(1)
		}
	}
	return len(line), nil
}

func (w *LogWriter) run() {
	defer close(w.ended)
	for line := range w.lines {
		if n := w.lost.Swap(0); n > 0 {
			fmt.Fprintf(w.to, "contextd: %d lines of the log were dropped, because nobody read it\n", n)
		}
		// An error means that nobody reads the log.
		_, _ = w.to.Write(line)
	}
}

// Close writes the lines that wait, unless that takes too long.
func (w *LogWriter) Close() {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.lines)
	}
	w.mu.Unlock()
	flush := time.NewTimer(logFlush)
	defer flush.Stop()
	select {
	case <-w.ended:
	case <-flush.C:
	}
}
