package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/contextd/contextd/cmd/contextd/internal/gauges"
	"github.com/contextd/contextd/cmd/contextd/internal/limit"
	"github.com/contextd/contextd/cmd/contextd/internal/server"
	"github.com/contextd/contextd/cmd/contextd/internal/transport"
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/compaction"
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/summarize"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// stores are the backends that every test runs over.
var stores = map[string]func(t *testing.T) eventlog.Store{
	"memory": func(*testing.T) eventlog.Store { return memlog.New() },
	"disk": func(t *testing.T) eventlog.Store {
		store, err := disklog.Open(t.TempDir(), disklog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return store
	},
}

func eachStore(t *testing.T, test func(t *testing.T, open func(t *testing.T) eventlog.Store)) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

// api is a server and a real gRPC connection.
type api struct {
	contextdv1.ContextServiceClient
	transcripts contextdv1.TranscriptServiceClient
	compaction  contextdv1.CompactionServiceClient
	conn        *grpc.ClientConn
	server      *server.Server
	store       eventlog.Store
	clock       *fakeClock
}

// fakeClock moves a second at every look.
type fakeClock struct{ seconds atomic.Int64 }

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (c *fakeClock) now() time.Time {
	return epoch.Add(time.Duration(c.seconds.Add(1)) * time.Second)
}

type option func(*server.Options)

func serve(t testing.TB, store eventlog.Store, options ...option) *api {
	t.Helper()
	models, err := budget.NewModels()
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	clock := &fakeClock{}
	var ids atomic.Int64
	journal := lifecycle.NewJournal(store, lifecycle.NewBus(lifecycle.BusOptions{}), clock.now)
	o := server.Options{
		Gauges: gauges.Open,
		Models: models,
		Budget: &contextdv1.Budget{Tokenizer: budget.TokenizerO200K},
		Limits: limit.Default(),
		Clock:  clock.now,
		NewID:  func() (string, error) { return fmt.Sprintf("id-%d", ids.Add(1)), nil },
	}
	o.Tenant = server.Tenant{
		Store: store, Logger: logger,
		Hooks: lifecycle.NewHooks(lifecycle.HooksOptions{}), Lifecycle: journal,
		Engine: assemble.New(store, assemble.Options{Gauges: gauges.Open, Models: models, Clock: clock.now, CacheSessions: 8, Journal: journal}),
	}
	for _, option := range options {
		option(&o)
	}
	// No policy here names a summarizer, so that no summary is made beside the requests.
	if o.Summarizers, err = summarize.NewRegistry(nil); err != nil {
		t.Fatal(err)
	}
	news := compaction.NewNews(journal)
	scheduler := summarize.NewScheduler(summarize.Options{Store: store, Sessions: o.Engine, Registry: o.Summarizers, Observer: news, Journal: journal, Now: o.Clock})
	o.Compactor = compaction.New(compaction.Options{
		Engine: o.Engine, Scheduler: scheduler, News: news, Journal: journal, Hooks: o.Hooks, Store: store, Clock: o.Clock, NewID: o.NewID, Logger: logger,
	})
	s, err := server.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	g, err := transport.NewServer(transport.Options{
		Logger: logger, MaxMessageBytes: o.Limits.MaxBatchBytes, MaxStreams: 128, ConnectionIdle: time.Hour,
		Bounds: transport.Bounds{Calls: transport.Calls{Max: 1024, MaxPerClient: 1024}, ReceiveTimeout: time.Minute, SendTimeout: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Register(g)
	l := bufconn.Listen(1 << 20)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:///bufconn",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		s.Drain()
		g.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		s.StopShadows(context.Background())
		o.Compactor.Close()
		scheduler.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return &api{
		ContextServiceClient: contextdv1.NewContextServiceClient(conn),
		transcripts:          contextdv1.NewTranscriptServiceClient(conn),
		compaction:           contextdv1.NewCompactionServiceClient(conn),
		conn:                 conn,
		server:               s, store: store, clock: clock,
	}
}
