package daemon_test

import (
	"encoding/base64"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/daemon"
	"github.com/contextd/contextd/internal/quote"
)

const (
	// longestLine is what a line of the daemon's log may take.
	longestLine = 8 << 10
	// headerRoom is what the headers of a status may take: some clients accept 8 KiB in total.
	headerRoom = 7 << 10
)

// lines checks what a daemon logs.
type lines struct{ t *testing.T }

func (l lines) Write(b []byte) (int, error) {
	line, ended := strings.CutSuffix(string(b), "\n")
	if !ended || len(line) > longestLine || !utf8.ValidString(line) || strings.ContainsFunc(line, quote.Unseen) {
		l.t.Errorf("a line of the log of %d bytes is more than a line, too long or hides something: %.2000q", len(b), line)
	}
	return len(b), nil
}

// logged is a logger of every format, at the lowest level.
func (l lines) logged(c config.Config) *slog.Logger {
	c.LogLevel = slog.LevelDebug
	var to []slog.Handler
	for _, c.LogFormat = range []string{config.LogJSON, config.LogText} {
		to = append(to, daemon.NewLogger(c, l).Handler())
	}
	return slog.New(slog.NewMultiHandler(to...))
}

// unfit says what is wrong with the form of an error; empty if it fits in a client's headers, and on its terminal.
func unfit(st *status.Status) string {
	details, err := proto.Marshal(st.Proto())
	if err != nil {
		return err.Error()
	}
	if size := len(url.PathEscape(st.Message())) + base64.StdEncoding.EncodedLen(len(details)); size > headerRoom {
		return "the error is too long for headers"
	}
	texts := []string{st.Message()}
	for _, d := range st.Details() {
		if bad, ok := d.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				texts = append(texts, v.GetField(), v.GetDescription())
			}
		}
	}
	for _, text := range texts {
		if strings.ContainsFunc(text, quote.Unseen) {
			return "the error is no line"
		}
	}
	return ""
}
