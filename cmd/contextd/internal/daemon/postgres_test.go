package daemon_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/internal/log/pglog/pgtest"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestPostgres: two daemons on one database take turns in one session. Each assembles the same bytes
// as the other, and what was sent before stays the beginning of what is sent next. Both say that
// they take no work while the database is away, and go on when it is back.
func TestPostgres(t *testing.T) {
	server := postgres(t)
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

// postgres is a server of the test's own.
func postgres(t *testing.T) *pgtest.Server {
	t.Helper()
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	if server == nil {
		t.Skip("SKIPPED: no PostgreSQL is installed (Debian's package postgresql)")
	}
	t.Cleanup(server.Stop)
	return server
}

// TestPostgresSummaries: two daemons are asked at once to compact one session by a summary. One of
// them has it made, and both return what was made.
func TestPostgresSummaries(t *testing.T) {
	dsn := postgres(t).Schema(t)
	type task struct {
		by *agent
		*contextdv1.SummaryTask
	}
	tasks := make(chan task, 10)
	var agents []*agent
	for range 2 {
		a := agentOf(t, config.Summarizer{Type: config.SummarizerPull, Lease: time.Minute}, func(c *config.Config) {
			c.Store, c.Postgres.DSN = config.StorePostgres, dsn
		})
		stream, err := a.compaction.LeaseSummaryTasks(t.Context(), &contextdv1.LeaseSummaryTasksRequest{WorkerId: "runtime"})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				resp, err := stream.Recv()
				if err != nil {
					return
				}
				tasks <- task{a, resp.GetTask()}
			}
		}()
		agents = append(agents, a)
	}
	agents[0].push(said(contextdv1.Role_ROLE_USER, text("Find the module that leaks.")))
	agents[0].work(8)
	type answer struct {
		*contextdv1.CompactSessionResponse
		err error
	}
	answers := make(chan answer, len(agents))
	var begun []func(string) *contextdv1.LifecycleEvent
	for _, a := range agents {
		begun = append(begun, a.watch())
	}
	for _, a := range agents {
		go func() {
			got, err := a.compact("summarize")
			answers <- answer{got, err}
		}()
	}
	for _, next := range begun {
		next("compaction_started")
	}
	only := <-tasks
	const wrote = "Modules 1 to 6 are in order."
	if _, err := only.by.compaction.CompleteSummaryTask(t.Context(), &contextdv1.CompleteSummaryTaskRequest{TaskId: only.GetTaskId(), Text: wrote}); err != nil {
		t.Fatal(err)
	}
	for range agents {
		if got := <-answers; got.err != nil {
			t.Errorf("%v, %v", got.CompactSessionResponse, got.err)
		}
	}
	for _, a := range agents {
		if all := a.summaries().GetSummaries(); len(all) != 1 || all[0].GetText() != wrote {
			t.Errorf("the summaries are %v", all)
		}
	}
	if one, other := assembledBytes(t, agents[0].running), assembledBytes(t, agents[1].running); fmt.Sprint(one) != fmt.Sprint(other) || !strings.Contains(fmt.Sprint(one), wrote) {
		t.Errorf("one daemon assembles\n%s\nand the other\n%s", one, other)
	}
	if len(tasks) != 0 {
		t.Errorf("the summary was asked for again: %v", <-tasks)
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
