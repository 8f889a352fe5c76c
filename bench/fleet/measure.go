package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// measure prints how long each operation takes on randomly drawn sessions, one after the other.
func measure(ctx context.Context, d *daemon, conn *pgx.Conn, sessions, samples int) error {
	began := time.Now()
	if err := d.start(ctx); err != nil {
		return err
	}
	defer func() { _ = d.stop() }()
	fmt.Printf("the daemon is ready after %s\n\n| operation | p50 ms | p99 ms | most ms |\n| --- | --- | --- | --- |\n", time.Since(began).Round(time.Millisecond))
	draw := rand.New(rand.NewPCG(1, 2))
	some := make([]string, min(samples, sessions))
	for i, n := range draw.Perm(sessions)[:len(some)] {
		some[i] = name(n)
	}
	token := ""
	for _, op := range []struct {
		name string
		do   func(i int) error
	}{
		{"scrape the metrics", func(int) error { return d.scrape(ctx) }},
		{"append to a new session", func(i int) error { return d.append(ctx, fmt.Sprintf("new-%d", i), 0) }},
		{"assemble, cold", func(i int) error { return d.assemble(ctx, some[i]) }},
		{"append", func(i int) error { return d.append(ctx, some[i], 4) }},
		{"assemble, warm, after the append", func(i int) error { return d.assemble(ctx, some[i]) }},
		{"list a page of 100 sessions", func(int) error {
			page, err := d.api.ListSessions(ctx, &contextdv1.ListSessionsRequest{PageToken: token})
			token = page.GetNextPageToken()
			return err
		}},
		{"delete", func(i int) error {
			_, err := d.api.DeleteSession(ctx, &contextdv1.DeleteSessionRequest{SessionId: some[i]})
			return err
		}},
	} {
		took := make([]time.Duration, len(some))
		for i := range some {
			began := time.Now()
			if err := op.do(i); err != nil {
				return fmt.Errorf("%s: %w", op.name, err)
			}
			took[i] = time.Since(began)
		}
		slices.Sort(took)
		ms := func(share float64) float64 {
			return float64(took[int(share*float64(len(took)-1))].Microseconds()) / 1000
		}
		fmt.Printf("| %s | %.2f | %.2f | %.2f |\n", op.name, ms(.5), ms(.99), ms(1))
	}
	began = time.Now()
	if _, err := conn.Exec(ctx, `VACUUM`); err != nil {
		return err
	}
	fmt.Printf("\na vacuum of all tables takes %s\n", time.Since(began).Round(time.Millisecond))
	return nil
}
