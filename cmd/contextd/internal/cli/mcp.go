package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/contextd/contextd/cmd/contextd/internal/auth"
	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/mcpserver"
	"github.com/contextd/contextd/cmd/contextd/internal/transport"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newMCP(c *client) *cobra.Command {
	var session string
	var at config.Config
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Let a model read its session's log, over the Model Context Protocol",
		Long: `Let a model read its session's log, over the Model Context Protocol.

It has three tools, which change nothing: recall returns what a pointer such as
ctx:12.0 replaces, search_log finds a text or an expression, and explain says whether
the model saw something, and if not, why. See docs/recall.md for hosts' configurations.

Without --listen it serves one client on stdin and stdout. With it, it serves streamable
HTTP at http://ADDRESS/mcp; beyond loopback only to callers that prove who they are, as
"contextd serve" does. The session is that of --session, which may begin later, or over HTTP
that of each request's header ` + mcpserver.SessionHeader + `.`,
		Example: `  contextd mcp --session my-session
  contextd mcp --session my-session --embedded ./data
  contextd mcp --listen 127.0.0.1:7272`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVar(&session, "session", "", "`session` that the tools are about")
	f.StringVar(&at.Listen, "listen", "", "`address` for streamable HTTP, such as 127.0.0.1:7272; empty for stdin and stdout")
	config.BindUnder(f, config.TopicCallers, at.BindCallers)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if at.Listen == "" && session == "" {
			return usageError{errors.New("--session must be set: on stdin there is nothing else that names it")}
		}
		if err := at.ValidateListening(); err != nil {
			return usageError{err}
		}
		return c.runReading(func(cmd *cobra.Command, api api, _ []string) error {
			ctx, version := cmd.Context(), c.program.Version
			noteMissing(cmd, api, session, "its tools have nothing to read until something is appended to it")
			if at.Listen == "" {
				err := mcpserver.New(api, session, version).Run(ctx, mcpserver.Stdio{In: cmd.InOrStdin(), Out: cmd.OutOrStdout()})
				if errors.Is(err, context.Canceled) {
					err = nil // a stop was asked for
				}
				return err
			}
			return serveMCP(ctx, at, mcpserver.HTTP(api, session, version), cmd.ErrOrStderr())
		})(cmd, nil)
	}
	return cmd
}

// noteWithin is how long to wait for the daemon to say whether a session exists, since the host waits too.
const noteWithin = 2 * time.Second

// noteMissing writes a note to stderr if a session does not exist yet; means says what follows for the
// command.
func noteMissing(cmd *cobra.Command, api api, session, means string) {
	if session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), noteWithin)
	defer cancel()
	_, err := api.GetSession(ctx, &contextdv1.GetSessionRequest{SessionId: session})
	if !isNotFound(err) {
		return // if no daemon answers, the tools say so
	}
	text := fmt.Sprintf("session %q does not exist yet; %s", session, means)
	if near, ok := errors.AsType[*mistypedError](unknownSession(ctx, api, err)); ok {
		text += fmt.Sprintf(" (did you mean %q?)", near.meant)
	}
	fmt.Fprintln(cmd.ErrOrStderr(), text)
}

// mcpClients is how many clients may be connected.
const mcpClients = 64

func serveMCP(ctx context.Context, at config.Config, handler http.Handler, stderr io.Writer) error {
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	callers, err := auth.New(at.Auth, logger)
	if err != nil {
		return usageError{err}
	}
	defer callers.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go callers.Run(ctx)
	tcp, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	l := callers.Listener(transport.Limited(tcp, transport.ConnectionLimits{Max: mcpClients, MaxPerClient: mcpClients}, logger))
	scheme := "http"
	if at.Auth.Encrypts() {
		scheme = "https"
	}
	fmt.Fprintf(stderr, "listening at %s://%s/mcp\n", scheme, tcp.Addr())
	return mcpserver.Serve(ctx, l, callers.Handler(handler))
}
