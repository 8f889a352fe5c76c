// Package client is the Go client of contextd, a daemon that assembles the contexts of LLM
// agents from an immutable event log.
//
// A [Client] is every service of the API (it has the methods of the generated stubs) and does
// what a loop around a model needs in addition: it repeats calls for as long as its patience
// lasts, holds the newest context of each session and format so that only what is new is
// sent, checks every context against the daemon's hash, and notices where a log that it
// appended to was lost.
//
// The example is an agent's loop. Kinds of errors, such as [ErrBudgetExceeded], are for errors.Is,
// and what they say is in [Error].
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

// Where a daemon is looked for.
const (
	// AddressEnv is the variable that says where the daemon is.
	AddressEnv = "CONTEXTD_ADDR"
	// DefaultAddress is where a daemon listens if nobody says otherwise.
	DefaultAddress = "127.0.0.1:7171"
)

// How long a call waits for a daemon that is starting, busy or not there.
const (
	// PatienceEnv is the variable that says how long: seconds, or a duration such as 1m30s.
	PatienceEnv = "CONTEXTD_PATIENCE"
	// DefaultPatience is how long if nobody says otherwise.
	DefaultPatience = 30 * time.Second
)

// Options are what a client may be given. The zero value is a client of the daemon at
// [AddressEnv] or else at [DefaultAddress].
type Options struct {
	// Address is host:port, unix:///path or the path of a socket.
	Address string
	// Credentials prove who calls, and how the daemon is known. The zero value: those of the
	// variables CONTEXTD_CA, CONTEXTD_CERT, CONTEXTD_KEY and CONTEXTD_TOKEN_FILE.
	Credentials Credentials
	// Patience is how long a call is repeated where the daemon says when to come back, or
	// where none answers. 0: as PatienceEnv says, or else DefaultPatience. Negative: calls are
	// not repeated.
	Patience time.Duration
	// HeldContexts is how many contexts are held at most. 0: 256.
	HeldContexts int
	// DialOptions are given to grpc.NewClient after the client's own.
	DialOptions []grpc.DialOption
	// Conn is used instead of an own connection. Closing it stays with the caller; Address
	// then only names it in errors, and Credentials and DialOptions must not be set.
	Conn grpc.ClientConnInterface
}

// Client is a client of a daemon. It may be used by several goroutines.
//
// The methods of the embedded services are those of the API as they are; those of Client
// itself add to them. Errors of calls are [*Error].
type Client struct {
	contextdv1.ContextServiceClient
	contextdv1.CompactionServiceClient
	contextdv1.TranscriptServiceClient

	own      io.Closer // nil where the connection was given
	patience patience
	held     *recent[heldKey, *Context]
	logs     *knownLogs
}

// New returns a client. It connects with the first call.
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

// Close closes the connection, unless it was given.
func (c *Client) Close() error {
	if c.own == nil {
		return nil
	}
	return c.own.Close()
}

// Dial returns a connection to a daemon as a Client makes it: it looks again for a daemon that
// is gone within a second, and takes messages of any size.
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

// Fixed windows: beside its daemon a client has no bandwidth to find out, and gRPC would find it
// by a ping with every call.
const (
	streamWindow = 1 << 20
	connWindow   = 8 << 20
)
