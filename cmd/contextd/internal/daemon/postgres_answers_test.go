package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/internal/log/pglog/pgtest"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestPostgresLostAnswers loses the database's answer to each write of each kind of call in turn, and repeats the call.
// What is stored then is what one call stores, the daemon knows it as another does, and it does not take the database
// for away.
func TestPostgresLostAnswers(t *testing.T) {
	server := postgres(t)
	calls := map[string]struct {
		call func(ctx context.Context, r *running) error
		// done is what a repeated call may say instead of an answer.
		done codes.Code
	}{
		"append": {call: func(ctx context.Context, r *running) error {
			_, err := r.api().AppendEvents(ctx, &contextdv1.AppendEventsRequest{SessionId: "s", ExpectedHead: proto.Uint64(lastSaid), Events: []*contextdv1.Event{saidAs("more", "and more")}})
			return err
		}},
		"append to a new session": {call: func(ctx context.Context, r *running) error {
			_, err := r.api().AppendEvents(ctx, &contextdv1.AppendEventsRequest{SessionId: "new", Events: []*contextdv1.Event{saidAs("more", "and more")}})
			return err
		}},
		"create": {done: codes.AlreadyExists, call: func(ctx context.Context, r *running) error {
			_, err := r.api().CreateSession(ctx, &contextdv1.CreateSessionRequest{SessionId: "new"})
			return err
		}},
		"fork": {done: codes.AlreadyExists, call: func(ctx context.Context, r *running) error {
			_, err := r.api().ForkSession(ctx, &contextdv1.ForkSessionRequest{SessionId: "s", NewSessionId: "new"})
			return err
		}},
		"delete": {done: codes.NotFound, call: func(ctx context.Context, r *running) error {
			_, err := r.api().DeleteSession(ctx, &contextdv1.DeleteSessionRequest{SessionId: "s", ExpectedHead: proto.Uint64(lastSaid)})
			return err
		}},
		"import": {call: importOnce},
		"assemble": {call: func(ctx context.Context, r *running) error {
			stream, err := r.api().AssembleContext(ctx, &contextdv1.AssembleContextRequest{SessionId: "s", IdempotencyKey: "k"})
			for err == nil {
				_, err = stream.Recv()
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}},
		"record": {call: func(ctx context.Context, r *running) error {
			_, err := r.api().RecordModelCall(ctx, &contextdv1.RecordModelCallRequest{SessionId: "s", InputTokens: 5, IdempotencyKey: "k"})
			return err
		}},
		"window": {call: compactBy("window", "")}, "summarize": {call: compactBy("summarize", "")},
		"summary": {call: compactBy("summarize", "What was said.")},
		"undo": {call: func(ctx context.Context, r *running) error {
			_, err := contextdv1.NewCompactionServiceClient(r.conn).UndoCompaction(ctx, &contextdv1.UndoCompactionRequest{SessionId: "s"})
			return err
		}},
	}
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			want := ""
			for lost := 0; ; lost++ {
				role := server.SchemaRole(t)
				proxy, err := pgtest.NewProxy(server)
				if err != nil {
					t.Fatal(err)
				}
				direct := start(t, settings(t, func(c *config.Config) { c.Store, c.Postgres.DSN = config.StorePostgres, server.RoleDSN(role) }))
				prepare(t, direct)
				o := options(t, settings(t, func(c *config.Config) {
					c.Store, c.Postgres.DSN = config.StorePostgres, proxy.DSN(role)+" default_query_exec_mode=exec"
				}))
				var log logged
				o.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(&log, t.Output()), nil))
				r := startWith(t, o)
				r.await(t, serving)
				stored(t, r) // it knows the session
				left := lost
				proxy.Lose(func(request []byte) bool {
					if !isWrite(request) {
						return false
					}
					left--
					return left == 0
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				err = c.call(ctx, r)
				for status.Code(err) == codes.Unavailable {
					err = c.call(ctx, r)
				}
				cancel()
				if err != nil && (lost == 0 || status.Code(err) != c.done) {
					t.Errorf("answer %d: %v", lost, err)
				}
				proxy.Lose(nil)
				has, other := stored(t, r), stored(t, direct)
				if lost == 0 {
					want = has
				}
				if has != want || other != want {
					t.Errorf("without answer %d is stored\n%s\nand by another daemon\n%s\nwant\n%s", lost, has, other, want)
				}
				r.end(t)
				direct.end(t)
				if text := log.take(); strings.Contains(text, "takes no work") {
					t.Errorf("without answer %d the daemon logs\n%s", lost, text)
				}
				proxy.Stop()
				if left > 0 {
					break
				}
			}
		})
	}
}

// isWrite reports whether a request changes what is stored; renewed leases and notifications do not.
func isWrite(request []byte) bool {
	has := func(text string) bool { return bytes.Contains(request, []byte(text)) }
	return has("INSERT INTO contextd_") && !has("contextd_leases") || has("UPDATE contextd_") || has("DELETE FROM contextd_") && !has("contextd_leases") || has("commit")
}

func saidAs(id, words string) *contextdv1.Event {
	e := said(contextdv1.Role_ROLE_USER, text(words))
	e.EventId = id
	return e
}

func compactBy(strategy, summary string) func(context.Context, *running) error {
	return func(ctx context.Context, r *running) error {
		_, err := contextdv1.NewCompactionServiceClient(r.conn).CompactSession(ctx, &contextdv1.CompactSessionRequest{SessionId: "s", Strategy: strategy, Summary: summary, KeepLastTurns: 1})
		return err
	}
}

func importOnce(ctx context.Context, r *running) error {
	stream, err := contextdv1.NewTranscriptServiceClient(r.conn).ImportTranscript(ctx)
	if err != nil {
		return err
	}
	const line = `{"type":"user","uuid":"%d","parentUuid":%s,"sessionId":"x","timestamp":"2026-01-01T00:00:0%dZ","message":{"role":"user","content":"message %d"}}` + "\n"
	var data []byte
	for n := range 5 {
		parent := "null"
		if n > 0 {
			parent = fmt.Sprintf("%q", fmt.Sprint(n-1))
		}
		data = fmt.Appendf(data, line, n, parent, n, n)
	}
	for _, part := range []*contextdv1.ImportTranscriptRequest{
		{Part: &contextdv1.ImportTranscriptRequest_Header{Header: &contextdv1.ImportHeader{SessionId: "new", Harness: "claude"}}},
		{Part: &contextdv1.ImportTranscriptRequest_Data{Data: data}},
	} {
		_ = stream.Send(part) // the answer says what failed
	}
	_, err = stream.CloseAndRecv()
	return err
}

// lastSaid is the last event that prepare stores.
const lastSaid = 17

// prepare stores a session that was compacted and assembled.
func prepare(t *testing.T, r *running) {
	t.Helper()
	say := func(from, to int) {
		var events []*contextdv1.Event
		for n := from; n < to; n++ {
			e := saidAs(fmt.Sprint(n), fmt.Sprintf("message %d", n))
			if n%2 == 1 {
				e.GetMessage().Role = contextdv1.Role_ROLE_ASSISTANT
			}
			events = append(events, e)
		}
		if _, err := r.api().AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: "s", Events: events}); err != nil {
			t.Fatal(err)
		}
	}
	say(0, 8)
	r.context(t, "s")
	if err := compactBy("summarize", "What was said before.")(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	say(8, 16)
}

// stored is what a daemon says of its sessions.
func stored(t *testing.T, r *running) string {
	t.Helper()
	var out bytes.Buffer
	list, err := r.api().ListSessions(t.Context(), &contextdv1.ListSessionsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list.GetSessions() {
		id := s.GetSessionId()
		fmt.Fprintln(&out, id, s.GetHeadSeq(), s.GetTurns(), s.GetParentSessionId(), s.GetForkSeq(), s.GetLogBytes())
		stream, err := r.api().ReadEvents(t.Context(), &contextdv1.ReadEventsRequest{SessionId: id})
		for err == nil {
			var page *contextdv1.ReadEventsResponse
			page, err = stream.Recv()
			for _, e := range page.GetEvents() {
				id := e.GetEventId()
				if len(id) > len("more") {
					id = "the daemon's"
				}
				fmt.Fprintln(&out, "  event", e.GetSeq(), id, e.GetMessage().GetBlocks(), e.GetCompaction() != nil)
			}
		}
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		projections, err := r.api().ListProjections(t.Context(), &contextdv1.ListProjectionsRequest{SessionId: id})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range projections.GetProjections() {
			if p.GetAsOfSeq() > lastSaid {
				continue // of a compaction, which is not repeated for it
			}
			fmt.Fprintln(&out, "  projection", p.GetProjectionId(), p.GetPrefixHash())
		}
		calls, err := r.api().ListModelCalls(t.Context(), &contextdv1.ListModelCallsRequest{SessionId: id})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&out, "  calls", len(calls.GetCalls()))
		summaries, err := contextdv1.NewCompactionServiceClient(r.conn).ListSummaries(t.Context(), &contextdv1.ListSummariesRequest{SessionId: id})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range summaries.GetSummaries() {
			fmt.Fprintln(&out, "  summary", s.GetText())
		}
		preview, err := r.api().AssembleContext(t.Context(), &contextdv1.AssembleContextRequest{SessionId: id, Preview: true, Budget: &contextdv1.Budget{MaxTokens: 10_000, Tokenizer: "heuristic"}})
		for err == nil {
			var answer *contextdv1.AssembleContextResponse
			answer, err = preview.Recv()
			for _, m := range answer.GetChunk().GetMessages() {
				fmt.Fprintf(&out, "  shown %s\n", m.GetJson())
			}
		}
		if !errors.Is(err, io.EOF) {
			fmt.Fprintln(&out, "  shown", err)
		}
	}
	return out.String()
}
