package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	adminv1 "github.com/contextd/contextd/proto/contextd/admin/v1"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// AddrEnv is the variable that says where the daemon is.
const AddrEnv = config.EnvPrefix + "ADDRESS"

// client is what the commands share that talk to a daemon.
type client struct {
	program  Program
	addr     string
	proof    proof
	embedded string
	tenant   string
	// creates says that the command may make the data directory of --embedded.
	creates bool
	json    bool
}

func (c *client) bind(f *pflag.FlagSet) {
	addr := config.Default().Listen
	if fromEnv, ok := c.program.LookupEnv(AddrEnv); ok && fromEnv != "" {
		addr = fromEnv
	}
	f.StringVar(&c.addr, "addr", addr, "`address` of the daemon, host:port or unix:///path; also "+AddrEnv)
	c.proof.bind(f, c.program.LookupEnv)
	f.StringVar(&c.tenant, "tenant", "", "`tenant` whose sessions --embedded is about; empty for those of no tenant")
	f.StringVar(&c.embedded, "embedded", "", "serve the sessions of this data `directory` without a daemon")
	f.BoolVar(&c.json, "json", false, "write JSON, one value per line")
}

// api is an open connection.
type api struct {
	contextdv1.ContextServiceClient
	transcripts contextdv1.TranscriptServiceClient
	compaction  contextdv1.CompactionServiceClient
	admin       adminv1.AdminServiceClient
}

// run makes the body of a command: it connects, runs f and disconnects.
func (c *client) run(f func(cmd *cobra.Command, api api, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		conn, closeConn, err := c.connect(cmd.Context())
		if err != nil {
			return err
		}
		defer func() {
			if closeErr := closeConn(); closeErr != nil {
				err = errors.Join(err, closeErr)
			}
		}()
		return f(cmd, newAPI(conn), args)
	}
}

// runCreating is run for a command with which a store may begin.
func (c *client) runCreating(f func(cmd *cobra.Command, api api, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c.creates = true
		return c.run(f)(cmd, args)
	}
}

func newAPI(conn *grpc.ClientConn) api {
	return api{
		ContextServiceClient: contextdv1.NewContextServiceClient(conn),
		transcripts:          contextdv1.NewTranscriptServiceClient(conn),
		compaction:           contextdv1.NewCompactionServiceClient(conn),
		admin:                adminv1.NewAdminServiceClient(conn),
	}
}

func (c *client) connect(ctx context.Context) (*grpc.ClientConn, func() error, error) {
	if c.embedded != "" {
		return c.embed(ctx)
	}
	if c.tenant != "" {
		return nil, nil, usageError{errors.New("--tenant must not be set without --embedded: a daemon goes by the proof of who calls")}
	}
	target := grpcTarget(c.addr)
	options, err := c.proof.options(target)
	if err != nil {
		return nil, nil, usageError{err}
	}
	conn, err := dial(target, options...)
	if err != nil {
		return nil, nil, usageError{fmt.Errorf("--addr: %w", err)}
	}
	return conn, conn.Close, nil
}

func dial(target string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient(target, append(opts,
		// An event, and so a message, may be larger than gRPC's default of 4 MiB.
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)),
	)...)
}

// grpcTarget lets a socket be named by its path alone.
func grpcTarget(addr string) string {
	if strings.HasPrefix(addr, "/") {
		return "unix://" + addr
	}
	return addr
}
