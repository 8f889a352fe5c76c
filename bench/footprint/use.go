package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// listening returns once the socket accepts connections. gRPC would wait a second after its first failed
// attempt.
func listening(ctx context.Context, socket string) error {
	for ctx.Err() == nil {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			return conn.Close()
		}
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return ctx.Err()
}

func sessionID(i int) string { return fmt.Sprintf("footprint-%d", i) }

const text = "func (s *Store) Append(ctx context.Context, id string, b Batch) (Commit, error) {\n\tif err := s.enter(ctx); err != nil {\n\t\treturn nil, err\n\t}\n\tdefer s.leave()\n"

// event is, by n, a tool call, its result, or a text of the agent.
func event(n int) *contextdv1.Event {
	role, block := contextdv1.Role_ROLE_ASSISTANT, &contextdv1.Block{}
	call := fmt.Sprintf("call_%d", n/4)
	switch n % 4 {
	case 0:
		role, block.Kind = contextdv1.Role_ROLE_USER, &contextdv1.Block_Text{Text: &contextdv1.Text{Text: fmt.Sprintf("Step %d: repair the build.", n)}}
	case 1:
		block.Kind = &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{CallId: call, Name: "read_file", ArgumentsJson: fmt.Appendf(nil, `{"path":"internal/part%d/store.go"}`, n)}}
	case 2:
		role, block.Kind = contextdv1.Role_ROLE_TOOL, &contextdv1.Block_ToolResult{ToolResult: &contextdv1.ToolResult{
			CallId: call, Content: []*contextdv1.Block{{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: fmt.Sprintf("%d\t%s", n, text)}}}},
		}}
	default:
		block.Kind = &contextdv1.Block_Text{Text: &contextdv1.Text{Text: fmt.Sprintf("Part %d is as it should be.", n)}}
	}
	return &contextdv1.Event{Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{Role: role, Blocks: []*contextdv1.Block{block}}}}
}

// fillers is how many sessions are filled in parallel.
const fillers = 16

func fill(ctx context.Context, d *daemon, sessions, events int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(fillers)
	for i := range sessions {
		g.Go(func() error {
			req := &contextdv1.AppendEventsRequest{SessionId: sessionID(i)}
			for n := range events {
				req.Events = append(req.Events, event(n))
			}
			_, err := d.api(i).AppendEvents(ctx, req)
			return err
		})
	}
	return g.Wait()
}

func assemble(ctx context.Context, api contextdv1.ContextServiceClient, id string) error {
	stream, err := api.AssembleContext(ctx, &contextdv1.AssembleContextRequest{SessionId: id, Budget: &contextdv1.Budget{MaxTokens: 16_000}, Brief: true})
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// warm measures how much memory a session takes that is cached between assemblies. It first assembles half of
// the sessions, so that memory which only the first ones need does not count.
func warm(ctx context.Context, d *daemon, sessions int) error {
	var held [2]uint64
	for half := range held {
		for i := range sessions / 2 {
			if err := assemble(ctx, d.api(0), sessionID(half*sessions/2+i)); err != nil {
				return err
			}
		}
		time.Sleep(settle)
		var err error
		if held[half], err = d.resident(); err != nil {
			return err
		}
	}
	fmt.Printf("warm sessions: %.1f MiB with %d, %.1f MiB with %d: %.0f KiB each\n",
		float64(held[0])/1024, sessions/2, float64(held[1])/1024, sessions, (float64(held[1])-float64(held[0]))/float64(sessions/2))
	return nil
}

// latencies are the durations of calls.
type latencies struct {
	mu  sync.Mutex
	all []time.Duration
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, d)
}

func (l *latencies) String() string {
	if len(l.all) == 0 {
		return "none"
	}
	slices.Sort(l.all)
	at := func(share int) time.Duration { return l.all[len(l.all)*share/100].Round(100 * time.Microsecond) }
	return fmt.Sprintf("%d, p50 %s, p99 %s", len(l.all), at(50), at(99))
}

// think is how long a stream is idle between two turns, as an agent is that waits for its model.
const think = 2 * time.Second

// use runs all streams at once. Each is an agent with a share of the sessions: it appends an event to one
// session after the other, and assembles that session's context.
func use(ctx context.Context, d *daemon, o options) error {
	var appends, assemblies latencies
	var failed atomic.Int64
	var first sync.Once
	until := time.Now().Add(o.duration)
	var wg sync.WaitGroup
	for i := range o.streams {
		wg.Go(func() {
			if err := agent(ctx, d, o, i, until, &appends, &assemblies); err != nil {
				failed.Add(1)
				first.Do(func() { fmt.Fprintln(os.Stderr, "footprint:", err) })
			}
		})
	}
	wg.Wait()
	kib, err := d.resident()
	if err != nil {
		return err
	}
	fmt.Printf("%d streams over %d sessions for %s: appends: %s; assemblies: %s; %d streams failed; %.1f MiB\n",
		o.streams, o.sessions, o.duration, &appends, &assemblies, failed.Load(), float64(kib)/1024)
	if failed.Load() > 0 {
		return errors.New("not all streams ended well")
	}
	return nil
}

func agent(ctx context.Context, d *daemon, o options, i int, until time.Time, appends, assemblies *latencies) error {
	stream, err := d.api(i).AppendEventStream(ctx)
	if err != nil {
		return err
	}
	// Spread the agents' first turns over the pause.
	time.Sleep(think * time.Duration(i) / time.Duration(o.streams))
	for n := 0; time.Now().Before(until); n++ {
		id := sessionID((i + n*o.streams) % o.sessions)
		began := time.Now()
		if err := stream.Send(&contextdv1.AppendEventStreamRequest{Append: &contextdv1.AppendEventsRequest{
			SessionId: id, Events: []*contextdv1.Event{event(4 * (o.events + n))},
		}}); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if _, err := stream.Recv(); err != nil {
			return err
		}
		appended := time.Now()
		appends.add(appended.Sub(began))
		if err := assemble(ctx, d.api(i), id); err != nil {
			return err
		}
		assemblies.add(time.Since(appended))
		time.Sleep(think)
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
