package daemon_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/internal/log/pglog/pgtest"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestPostgres: two daemons on one database take turns in one session. Each assembles the same bytes
// as the other, and what was sent before stays the beginning of what is sent next. Both say that
// they take no work while the database is away, and go on when it is back.
func TestPostgres(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	if server == nil {
		t.Skip("SKIPPED: no PostgreSQL is installed (Debian's package postgresql)")
	}
	defer server.Stop()
	dsn := server.Schema(t)
	var daemons []*running
	for range 2 {
		r := start(t, settings(t, func(c *config.Config) { c.Store, c.Postgres.DSN = config.StorePostgres, dsn }))
		r.await(t, serving)
		daemons = append(daemons, r)
	}
	turn := func(n int) {
		t.Helper()
		roles := []contextdv1.Role{contextdv1.Role_ROLE_USER, contextdv1.Role_ROLE_ASSISTANT}
		req := &contextdv1.AppendEventsRequest{SessionId: "s", Events: []*contextdv1.Event{said(roles[n%2], text(fmt.Sprintf("message %d", n)))}}
		if _, err := daemons[n%2].api().AppendEvents(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	var before []string
	same := func() {
		t.Helper()
		first, second := assembledBytes(t, daemons[0]), assembledBytes(t, daemons[1])
		if fmt.Sprint(first) != fmt.Sprint(second) {
			t.Fatalf("one daemon assembles\n%s\nand the other\n%s", first, second)
		}
		if len(first) != len(before)+1 || fmt.Sprint(first[:len(before)]) != fmt.Sprint(before) {
			t.Fatalf("after\n%s\ncomes\n%s", before, first)
		}
		before = first
	}
	const turns = 6
	for n := range turns {
		turn(n)
		same()
	}
	server.Crash()
	for _, r := range daemons {
		r.await(t, notServing)
	}
	if err := server.Launch(); err != nil {
		t.Fatal(err)
	}
	for _, r := range daemons {
		r.await(t, serving)
	}
	turn(turns)
	same()
	for _, r := range daemons {
		r.end(t)
	}
}

// assembledBytes are the messages of a context.
func assembledBytes(t *testing.T, r *running) (messages []string) {
	t.Helper()
	stream, err := r.api().AssembleContext(t.Context(), &contextdv1.AssembleContextRequest{
		SessionId: "s", Budget: &contextdv1.Budget{MaxTokens: 10_000, Tokenizer: "heuristic"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return messages
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range answer.GetChunk().GetMessages() {
			messages = append(messages, string(m.GetJson()))
		}
	}
}
