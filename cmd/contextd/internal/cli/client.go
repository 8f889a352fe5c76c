package cli

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	contextdclient "github.com/contextd/contextd/client"
	"github.com/contextd/contextd/cmd/contextd/internal/config"
	adminv1 "github.com/contextd/contextd/proto/contextd/admin/v1"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// client is what the commands that call a daemon share.
type client struct {
	program     Program
	addr        string
	credentials contextdclient.Credentials
	embedded    string
	tenant      string
	// creates is set where the command may create the data directory of --embedded.
	creates bool
	// reads is set where the command must not change the data directory.
	reads  bool
	output outputFormat
}

// bind adds the flags that all such commands have to a command, for its subcommands too.
func (c *client) bind(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	config.BindUnder(f, topicConnection, c.bindConnection)
	bindQuiet(f)
	if cmd.Flags().Lookup("output") == nil {
		c.output.bind(f)
		cmd.MarkFlagsMutuallyExclusive("json", "output")
	} else {
		c.output.bindJSON(f)
	}
}

func (c *client) bindConnection(f *pflag.FlagSet) {
	fromEnv, _ := c.program.LookupEnv(contextdclient.AddressEnv)
	f.StringVar(&c.addr, "addr", cmp.Or(fromEnv, contextdclient.DefaultAddress), "`address` of the daemon, host:port or unix:///path; also "+contextdclient.AddressEnv)
	bindCredentials(&c.credentials, f, c.program.LookupEnv)
	f.StringVar(&c.tenant, "tenant", "", "`tenant` whose sessions --embedded is about; empty for those of no tenant")
	f.StringVar(&c.embedded, "embedded", "", "serve the sessions of this data `directory` without a daemon")
}

// api is the services on an open connection.
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
		api := newAPI(conn)
		return unknownName(unknownSession(cmd.Context(), api, f(cmd, api, args)))
	}
}

// runCreating is run for a command that may create the data directory.
func (c *client) runCreating(f func(cmd *cobra.Command, api api, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c.creates = true
		return c.run(f)(cmd, args)
	}
}

// runReading is run for a command that changes nothing: it works on a directory that may not, or on a full disk cannot,
// be written to.
func (c *client) runReading(f func(cmd *cobra.Command, api api, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c.reads = true
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
	conn, err := contextdclient.Dial(c.addr, c.credentials)
	if err != nil {
		return nil, nil, usageError{err}
	}
	return conn, conn.Close, nil
}
