package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/internal/log/pglog"
	"github.com/contextd/contextd/internal/log/pglog/pgtest"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

const (
	databaseWriters  = 64
	databaseSessions = 16
	// databaseTimeout bounds each statement of the daemons under test.
	databaseTimeout = 3 * time.Second
)

// database is PostgreSQL with what is between it and the daemons.
type database struct {
	primary, standby *pgtest.Server
	proxy            *pgtest.Proxy
	bouncer          *pgtest.Bouncer
}

// databaseFault breaks a database and repairs it. If the daemons cannot work meanwhile, it calls broken while
// that is so.
type databaseFault struct {
	name string
	do   func(d *database, broken func()) error
}

// Faults of the server itself.
var (
	failover = databaseFault{"failover", func(d *database, broken func()) error {
		d.primary.Kill()
		broken()
		if err := d.standby.Promote(); err != nil {
			return err
		}
		d.primary, d.standby = d.standby, d.primary
		if err := d.point(); err != nil {
			return err
		}
		return d.standby.Follow(d.primary)
	}}
	killedServer = databaseFault{"server killed", func(d *database, broken func()) error {
		d.primary.Kill()
		broken()
		return d.primary.Launch()
	}}
	restartedServer = databaseFault{"server restarted", func(d *database, _ func()) error {
		d.primary.Crash()
		return d.primary.Launch()
	}}
	killedStandby = databaseFault{"standby killed", func(d *database, broken func()) error {
		d.standby.Kill()
		broken()
		return d.standby.Launch()
	}}
	cut     = databaseFault{"connections cut", func(d *database, _ func()) error { d.proxy.Cut(false); return nil }}
	reset   = databaseFault{"connections reset", func(d *database, _ func()) error { d.proxy.Cut(true); return nil }}
	stalled = databaseFault{"network stalled", func(d *database, broken func()) error {
		defer d.proxy.Stall()()
		broken()
		return nil
	}}
	cutStalled = databaseFault{"connections reset while stalled", func(d *database, broken func()) error {
		resume := d.proxy.Stall()
		broken()
		defer resume()
		d.proxy.Cut(true)
		return nil
	}}
	killedBouncer = databaseFault{"pgbouncer killed", func(d *database, broken func()) error {
		d.bouncer.Kill()
		broken()
		return d.bouncer.Launch(d.primary)
	}}
)

// point directs the connections of the daemons to the primary.
func (d *database) point() error {
	if d.proxy != nil {
		d.proxy.Point(d.primary)
		d.proxy.Cut(false)
	}
	if d.bouncer == nil {
		return nil
	}
	d.bouncer.Kill()
	return d.bouncer.Launch(d.primary)
}

// TestFaultDatabase breaks PostgreSQL, and what is between it and two daemons, while 64 clients append.
// Nothing is restarted: clients go on once the database does. No acknowledged event may be lost or doubled,
// each session's hash chain must be correct, and daemons may only report that they are ready while they are.
func TestFaultDatabase(t *testing.T) {
	binary := build(t)
	for _, c := range []struct {
		name    string
		full    int // rounds in a full run; a short one has one of each fault
		connect func(t *testing.T, d *database) (dsn string)
		faults  []databaseFault
	}{
		{"standby", 30, func(_ *testing.T, d *database) string { return pgtest.AnyDSN(d.primary, d.standby) },
			[]databaseFault{failover, killedServer, killedStandby, restartedServer}},
		{"proxy", 20, func(t *testing.T, d *database) (dsn string) {
			proxy, err := pgtest.NewProxy(d.primary)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(proxy.Stop)
			d.proxy = proxy
			return proxy.DSN("tester")
		}, []databaseFault{cut, stalled, reset, killedServer, cutStalled}},
		{"pgbouncer", 20, func(t *testing.T, d *database) (dsn string) {
			d.bouncer = pgtest.StartBouncer(t, d.primary)
			return d.bouncer.DSN("tester")
		}, []databaseFault{failover, killedBouncer, restartedServer}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !inFull() {
				t.Parallel() // they wait most of the time
			}
			primary, standby := pgtest.Pair(t)
			if primary == nil {
				t.Skip("SKIPPED: no PostgreSQL is installed (Debian's package postgresql)")
			}
			d := &database{primary: primary, standby: standby}
			dsn := c.connect(t, d)
			if err := pglog.Migrate(t.Context(), primary.DSN("")); err != nil {
				t.Fatal(err)
			}
			var daemons []*process
			for range 2 {
				cmd := exec.Command(binary, "serve", "--listen=", "--store=postgres", "--log-level=error",
					fmt.Sprintf("--postgres-statement-timeout=%s", databaseTimeout), "--default-budget={tokenizer: heuristic}")
				cmd.Env = append(cmd.Environ(), "CONTEXTD_POSTGRES_DSN="+dsn)
				daemons = append(daemons, spawn(t, cmd))
			}
			rng := rand.New(rand.NewPCG(*seed, 18))
			faults := slices.Clone(c.faults)
			if inFull() {
				for len(faults) < c.full {
					faults = append(faults, c.faults[rng.IntN(len(c.faults))])
				}
			}
			load := startDatabaseLoad(t, daemons)
			for round, f := range faults {
				load.await(t, 50+rng.IntN(200))
				began := time.Now()
				if err := f.do(d, func() { awaitNotReady(t, daemons) }); err != nil {
					t.Fatalf("round %d, %s: %v", round, f.name, err)
				}
				load.await(t, 1)
				back := time.Since(began)
				for _, p := range daemons {
					if !p.ready(t) {
						t.Fatalf("round %d, %s: not ready again\n%s", round, f.name, p.log)
					}
				}
				t.Logf("round %d: %s; the first answer after %s", round, f.name, back.Round(10*time.Millisecond))
			}
			load.await(t, 100)
			load.end()
			load.verify(t, daemons, d.primary.DSN(""))
			t.Logf("%d rounds, seed %d: %d events acknowledged, %d appends repeated", len(faults), *seed, load.know.acknowledged(), load.repeated.Load())
		})
	}
}

// awaitNotReady waits until no daemon reports that it is ready.
func awaitNotReady(t *testing.T, daemons []*process) {
	for _, p := range daemons {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		watch, err := grpc_health_v1.NewHealthClient(p.conn).Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
		for err == nil {
			var now *grpc_health_v1.HealthCheckResponse
			if now, err = watch.Recv(); now.GetStatus() == grpc_health_v1.HealthCheckResponse_NOT_SERVING {
				break
			}
		}
		cancel()
		if err != nil {
			t.Errorf("a daemon reports to be ready while its database is away: %v", err)
		}
	}
}

// databaseLoad is a load of clients that repeat each append until it is acknowledged.
type databaseLoad struct {
	know     *knowledge
	acks     chan struct{}
	repeated atomic.Int64
	stop     context.CancelFunc
	running  sync.WaitGroup
}

func startDatabaseLoad(t *testing.T, daemons []*process) *databaseLoad {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &databaseLoad{know: newKnowledge(), acks: make(chan struct{}), stop: stop}
	t.Cleanup(l.end)
	for n := range databaseWriters {
		client := contextdv1.NewContextServiceClient(daemons[n%len(daemons)].conn)
		w := &killWriter{session: fmt.Sprintf("s%d", n/2%databaseSessions), name: fmt.Sprintf("w%d", n), rng: rand.New(rand.NewPCG(*seed, uint64(n)))}
		l.running.Go(func() {
			for ctx.Err() == nil {
				l.append(ctx, t, client, w.next())
			}
		})
	}
	return l
}

// append repeats a call as the API asks clients to.
func (l *databaseLoad) append(ctx context.Context, t *testing.T, client contextdv1.ContextServiceClient, req *contextdv1.AppendEventsRequest) {
	for {
		resp, err := client.AppendEvents(ctx, req)
		switch {
		case ctx.Err() != nil:
			l.know.lose(req)
			return
		case err == nil:
			l.know.ack(req.GetSessionId(), resp)
			select {
			case l.acks <- struct{}{}:
			default:
			}
			return
		case status.Code(err) != codes.Unavailable && status.Code(err) != codes.Aborted && reasonOf(err) != apierr.ReasonBusy:
			t.Errorf("a client got %v", err)
			return
		}
		l.repeated.Add(1)
		pause(ctx, 20*time.Millisecond)
	}
}

// await waits for so many answers.
func (l *databaseLoad) await(t *testing.T, answers int) {
	t.Helper()
	within := time.After(2 * time.Minute)
	for range answers {
		select {
		case <-l.acks:
		case <-within:
			t.Fatal("the clients do not go on")
		}
	}
}

func (l *databaseLoad) end() {
	l.stop()
	l.running.Wait()
}

// awaitRead repeats a read as the API asks clients to, since connections from before a fault may be in use.
func awaitRead(t *testing.T, client contextdv1.ContextServiceClient) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		_, err := client.GetSession(t.Context(), &contextdv1.GetSessionRequest{SessionId: "s0"})
		if err == nil {
			return
		}
		if status.Code(err) != codes.Unavailable || time.Now().After(deadline) {
			t.Fatal(err)
		}
		pause(t.Context(), 20*time.Millisecond)
	}
}

// verify reads all sessions from each daemon, and checks their hash chains.
func (l *databaseLoad) verify(t *testing.T, daemons []*process, dsn string) {
	t.Helper()
	for _, p := range daemons {
		client := contextdv1.NewContextServiceClient(p.conn)
		awaitRead(t, client)
		l.know.verify(t, client)
		for session := range l.know.acked {
			seen := map[string]bool{}
			for _, e := range readAll(t, client, session) {
				if seen[e.GetEventId()] {
					t.Errorf("%s: %s is there twice", session, e.GetEventId())
				}
				seen[e.GetEventId()] = true
			}
		}
	}
	store, err := pglog.Open(t.Context(), dsn, pglog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for session := range l.know.acked {
		if err := store.Verify(t.Context(), session); err != nil {
			t.Error(err)
		}
	}
}
