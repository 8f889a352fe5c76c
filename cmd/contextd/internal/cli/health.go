package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/cmd/contextd/internal/health"
)

func newHealth(c *client) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Say whether the daemon accepts work",
		Long: `Say whether the daemon accepts work. The exit code is 0 if it does and 5 if
it does not, or is not there. Lines below say how its parts are: a daemon accepts
work while its store is healthy; without a summarizer it writes summaries by rules.`,
		Example: `  contextd health
  contextd health --wait 30s --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if wait < 0 {
				return usageError{errors.New("--wait must not be negative")}
			}
			conn, closeConn, err := c.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer func() {
				if closeErr := closeConn(); err == nil {
					err = closeErr
				}
			}()
			if c.embedded != "" {
				wait = max(wait, embeddedWait)
			}
			if wait > 0 {
				err = awaitServing(cmd.Context(), conn, wait)
			} else {
				err = checkServing(cmd.Context(), conn)
			}
			if err != nil {
				return err
			}
			parts, err := partStates(cmd.Context(), conn)
			if err != nil {
				return err
			}
			if c.output.structured() {
				return writeLines(cmd.OutOrStdout(), c.output, []healthReport{{"serving", parts}})
			}
			t := newTable(cmd, "serving")
			for _, name := range sortedKeys(parts) {
				t.row("  "+name, parts[name])
			}
			return t.flush()
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait this long for it to be ready")
	return cmd
}

// embeddedWait is how long a store that the command itself has just opened may take to be ready: a moment.
const embeddedWait = 10 * time.Second

// healthReport is the health of a daemon that is serving, for --json.
type healthReport struct {
	Status string            `json:"status"`
	Parts  map[string]string `json:"parts"`
}

// partStates returns the health of each part of the daemon.
func partStates(ctx context.Context, conn *grpc.ClientConn) (map[string]string, error) {
	states := map[string]string{}
	resp, err := grpc_health_v1.NewHealthClient(conn).List(ctx, &grpc_health_v1.HealthListRequest{})
	if status.Code(err) == codes.Unimplemented {
		return states, nil // an older daemon has no List
	}
	for name, of := range resp.GetStatuses() {
		part, ok := health.Label(name)
		if !ok {
			continue
		}
		states[part] = "well"
		if of.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			states[part] = "failing"
		}
	}
	return states, err
}

var errNotServing = status.Error(codes.Unavailable, "the daemon is there and takes no work; its log says why")

func checkServing(ctx context.Context, conn *grpc.ClientConn) error {
	resp, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		return err
	}
	if resp.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return errNotServing
	}
	return nil
}

// lastLook is how long the look may take that says why a daemon did not become ready.
const lastLook = time.Second

func awaitServing(ctx context.Context, conn *grpc.ClientConn, wait time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	watch, err := grpc_health_v1.NewHealthClient(conn).Watch(waiting, &grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(true))
	for err == nil {
		var resp *grpc_health_v1.HealthCheckResponse
		if resp, err = watch.Recv(); err == nil && resp.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING {
			return nil
		}
	}
	if waiting.Err() == nil {
		return err
	}
	looking, cancel := context.WithTimeout(ctx, lastLook)
	defer cancel()
	err = checkServing(looking, conn)
	if looking.Err() != nil {
		return status.Error(codes.Unavailable, "the daemon did not become ready in time")
	}
	return err
}
