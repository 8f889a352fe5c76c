// Package client is the Go client of contextd, a daemon that assembles the contexts of LLM
// agents from an immutable event log.
//
// A [Client] has the methods of all services of the API, and does what a loop around a model needs
// in addition:
//
//   - it repeats calls that fail for a while, as long as its patience lasts;
//   - it keeps the newest context of each session and format, so that the daemon sends only what
//     is new;
//   - it checks every context against the daemon's hash;
//   - it notices if a log that it appended to was lost.
//
// The example is an agent's loop. To find out the kind of an error, use errors.Is with a value such
// as [ErrBudgetExceeded]; its details are in [Error].
package client

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// The daemon's address.
const (
	// AddressEnv is the variable with the daemon's address.
	AddressEnv = "CONTEXTD_ADDR"
	// DefaultAddress is where a daemon listens by default.
	DefaultAddress = "127.0.0.1:7171"
)

// For how long a call is repeated if the daemon is starting, busy or not running.
const (
	// PatienceEnv is the variable with that time: seconds, or a duration such as 1m30s.
	PatienceEnv = "CONTEXTD_PATIENCE"
	// DefaultPatience is that time by default.
	DefaultPatience = 30 * time.Second
)

// Options configure a client. The zero value is for the daemon at [AddressEnv], or else at
// [DefaultAddress].
type Options struct {
	// Address is host:port, unix:///path or the path of a socket.
	Address string
	// Credentials prove who calls, and verify the daemon. The zero value: those of the variables
	// CONTEXTD_CA, CONTEXTD_CERT, CONTEXTD_KEY and CONTEXTD_TOKEN_FILE.
	Credentials Credentials
	// Patience is for how long a call is repeated if the daemon asks for another try, or if no
	// daemon answers. 0: the time in PatienceEnv, or else DefaultPatience. Negative: calls are not
	// repeated.
	Patience time.Duration
	// HeldContexts is the most contexts that are kept. 0: 256.
	HeldContexts int
	// DialOptions are passed to grpc.NewClient after the client's own.
	DialOptions []grpc.DialOption
	// Conn is used instead of a connection of the client's own. The caller must close it. Address
	// then only names the daemon in errors, and Credentials and DialOptions must not be set.
	Conn grpc.ClientConnInterface
}

// Client is a client of a daemon. It may be used by several goroutines.
//
// The methods of the embedded services are the plain calls of the API. Methods of Client itself
// do more, and replace those of the same name. Errors of calls are [*Error].
type Client struct {
	contextdv1.ContextServiceClient
	contextdv1.CompactionServiceClient
	contextdv1.TranscriptServiceClient

	own      io.Closer // nil where the connection was given
	patience patience
	held     *recent[heldKey, *Context]
	logs     *knownLogs
}

// New returns a client. It connects at the first call.
func New(o Options) (*Client, error) {
	address := cmp.Or(o.Address, os.Getenv(AddressEnv), DefaultAddress)
	if o.Patience == 0 {
		var err error
		if o.Patience, err = patienceFromEnv(); err != nil {
			return nil, err
		}
	}
	c := &Client{
		patience: patience(o.Patience),
		held:     newRecent[heldKey, *Context](cmp.Or(o.HeldContexts, 256)),
		logs:     newKnownLogs(),
	}
	conn := o.Conn
	if conn == nil {
		if o.Credentials == (Credentials{}) {
			o.Credentials = credentialsFromEnv()
		}
		own, err := Dial(address, o.Credentials, o.DialOptions...)
		if err != nil {
			return nil, err
		}
		c.own, conn = own, own
	} else if o.Credentials != (Credentials{}) || len(o.DialOptions) > 0 {
		return nil, errors.New("client.Options: Credentials and DialOptions have no effect on a Conn that is given")
	}
	patient := &patientConn{conn: conn, address: address, patience: c.patience}
	c.ContextServiceClient = contextdv1.NewContextServiceClient(patient)
	c.CompactionServiceClient = contextdv1.NewCompactionServiceClient(patient)
	c.TranscriptServiceClient = contextdv1.NewTranscriptServiceClient(patient)
	return c, nil
}

// Close closes the connection, unless it is Options.Conn.
func (c *Client) Close() error {
	if c.own == nil {
		return nil
	}
	return c.own.Close()
}

// Dial returns a connection to a daemon like that of a Client: if the daemon is gone it tries to
// connect again at least every second, and it receives messages of any size.
func Dial(address string, of Credentials, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	target := address
	if strings.HasPrefix(address, "/") {
		target = "unix://" + address
	} else if !strings.Contains(address, ":") || strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://") {
		return nil, fmt.Errorf("the address %q must be host:port or unix:///path", address)
	}
	proof, err := of.dialOptions(target)
	if err != nil {
		return nil, err
	}
	again := backoff.DefaultConfig
	again.BaseDelay, again.MaxDelay = 100*time.Millisecond, time.Second
	return grpc.NewClient(target, append(append(proof,
		// An event, and so a message, may be larger than gRPC's default of 4 MiB.
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: 5 * time.Second}),
		grpc.WithStaticStreamWindowSize(streamWindow),
		grpc.WithStaticConnWindowSize(connWindow),
	), options...)...)
}

// The flow control windows are fixed: a client is near its daemon, and gRPC would otherwise measure
// the bandwidth with a ping at every call.
const (
	streamWindow = 1 << 20
	connWindow   = 8 << 20
)
