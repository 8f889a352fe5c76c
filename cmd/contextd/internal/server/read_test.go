package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func seqsOf(events []*contextdv1.Event) string {
	var out []string
	for _, e := range events {
		out = append(out, fmt.Sprint(e.GetSeq()))
	}
	return strings.Join(out, " ")
}

func TestReadRanges(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		a.append(t, "s", user("1"), user("2"), user("3"), user("4"))
		tests := []struct {
			from, to uint64
			want     string
		}{
			{0, 0, "1 2 3 4"}, {1, 4, "1 2 3 4"}, {2, 3, "2 3"}, {3, 0, "3 4"}, {4, 99, "4"}, {5, 0, ""}, {99, 0, ""}, {0, 1, "1"},
		}
		for _, test := range tests {
			stream, err := a.ReadEvents(t.Context(), &contextdv1.ReadEventsRequest{SessionId: "s", FromSeq: test.from, ToSeq: test.to})
			if err != nil {
				t.Fatal(err)
			}
			var got []*contextdv1.Event
			parts, err := received(stream.Recv)
			if err != nil {
				t.Fatal(err)
			}
			for _, resp := range parts {
				got = append(got, resp.GetEvents()...)
			}
			if seqsOf(got) != test.want {
				t.Errorf("%d to %d gives %s; want %s", test.from, test.to, seqsOf(got), test.want)
			}
		}
	})
}

// replacing is a store in which another client deletes a session and makes it again, with more events, before a call.
type replacing struct {
	eventlog.Store
	before string
	made   bool
	t      *testing.T
}

func (s *replacing) replace(ctx context.Context, call, id string) {
	if s.made || call != s.before {
		return
	}
	s.made = true
	if err := s.DeleteSession(ctx, id, 0, nil); err != nil {
		s.t.Error(err)
	}
	for i := range 9 {
		if _, err := s.Append(ctx, id, eventlog.Batch{Events: []eventlog.Event{logtest.Say(fmt.Sprint("new ", i))}}); err != nil {
			s.t.Error(err)
		}
	}
}

func (s *replacing) Read(ctx context.Context, id string, from, to eventlog.Seq) iter.Seq2[eventlog.Event, error] {
	s.replace(ctx, "read", id)
	return s.Store.Read(ctx, id, from, to)
}

func (s *replacing) ChainHead(ctx context.Context, id string, seq eventlog.Seq) ([]byte, error) {
	s.replace(ctx, "chain", id)
	return s.Store.ChainHead(ctx, id, seq)
}

func (s *replacing) WaitPast(ctx context.Context, id string, seq eventlog.Seq) (eventlog.Seq, error) {
	s.replace(ctx, "wait", id)
	return s.Store.WaitPast(ctx, id, seq)
}

// TestReadEndsWithItsSession: who reads, or follows, a session is sent nothing of another that gets its id meanwhile.
func TestReadEndsWithItsSession(t *testing.T) {
	for _, before := range []string{"read", "chain", "wait"} {
		t.Run("before the "+before, func(t *testing.T) {
			a := serve(t, &replacing{Store: stores["memory"](t), before: before, t: t})
			a.append(t, "s", user("1"), user("2"))
			stream, err := a.ReadEvents(t.Context(), &contextdv1.ReadEventsRequest{SessionId: "s", FromSeq: 1, ToSeq: 9, Follow: before == "wait"})
			if err != nil {
				t.Fatal(err)
			}
			parts, err := received(stream.Recv)
			for _, part := range parts {
				for _, e := range part.GetEvents() {
					if strings.HasPrefix(e.GetEventId(), "new") {
						t.Errorf("event %d is another session's", e.GetSeq())
					}
				}
			}
			if status.Code(err) != codes.NotFound {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}

// TestExportIsOfOneSession: a transcript has nothing of another session that gets the id while it is gathered.
func TestExportIsOfOneSession(t *testing.T) {
	a := serve(t, &replacing{Store: stores["memory"](t), before: "read", t: t})
	a.append(t, "s", user("1"), user("2"))
	if _, _, err := a.export(t, &contextdv1.ExportTranscriptRequest{SessionId: "s", Harness: "claude-code"}); status.Code(err) != codes.NotFound {
		t.Errorf("it ends with %v", err)
	}
}

// TestRecallIsOfOneSession: an answer for a model has nothing of another session that gets the id while it is searched.
func TestRecallIsOfOneSession(t *testing.T) {
	for tool, arguments := range map[string]string{"search_log": `{"text":"new"}`, "recall": `{"pointer":"ctx:2.0"}`} {
		a := serve(t, &replacing{Store: stores["memory"](t), before: "read", t: t})
		a.append(t, "s", user("1"), user("2"))
		answer, err := a.CallRecallTool(t.Context(), &contextdv1.CallRecallToolRequest{SessionId: "s", Name: tool, ArgumentsJson: []byte(arguments)})
		if status.Code(err) != codes.NotFound {
			t.Errorf("%s: %v, %v", tool, answer, err)
		}
	}
}

// TestReadChunks bounds messages, large events aside, and fills them.
func TestReadChunks(t *testing.T) {
	a := serve(t, stores["memory"](t))
	var events []*contextdv1.Event
	for i := range 300 {
		size := 100 + i*7%900
		if i%50 == 49 {
			size = 100_000
		}
		events = append(events, user(strings.Repeat("x", size)))
	}
	a.append(t, "s", events...)
	stream, err := a.ReadEvents(t.Context(), &contextdv1.ReadEventsRequest{SessionId: "s"})
	if err != nil {
		t.Fatal(err)
	}
	messages, read := 0, 0
	parts, err := received(stream.Recv)
	if err != nil {
		t.Fatal(err)
	}
	for _, resp := range parts {
		messages++
		read += len(resp.GetEvents())
		if size := proto.Size(resp); size > 31<<10 && len(resp.GetEvents()) > 1 {
			t.Errorf("a message of %d bytes holds %d events", size, len(resp.GetEvents()))
		}
	}
	if read != len(events) {
		t.Errorf("%d events came", read)
	}
	if messages > 30 {
		t.Errorf("%d messages for 300 events of half a KiB", messages)
	}
}

func TestFollow(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		a.append(t, "s", user("1"))
		stream, err := a.ReadEvents(t.Context(), &contextdv1.ReadEventsRequest{SessionId: "s", ToSeq: 3, Follow: true})
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i <= 3; i++ {
			resp, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if got := seqsOf(resp.GetEvents()); got != fmt.Sprint(i) {
				t.Fatalf("followed to %s; want %d", got, i)
			}
			a.append(t, "s", user("next"))
		}
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("behind to_seq: %v", err)
		}
	})
}

func TestFollowersEnd(t *testing.T) {
	tests := map[string]struct {
		end  func(t *testing.T, a *api, cancel context.CancelFunc)
		want badInput
	}{
		"the session goes away": {func(t *testing.T, a *api, _ context.CancelFunc) {
			if _, err := a.DeleteSession(t.Context(), &contextdv1.DeleteSessionRequest{SessionId: "s"}); err != nil {
				t.Error(err)
			}
		}, badInput{code: codes.NotFound, reason: apierr.ReasonSessionNotFound}},
		"the daemon stops": {func(_ *testing.T, a *api, _ context.CancelFunc) { a.server.Drain() }, badInput{code: codes.Unavailable, reason: apierr.ReasonDraining}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := serve(t, stores["memory"](t))
			a.append(t, "s", user("1"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stream, err := a.ReadEvents(ctx, &contextdv1.ReadEventsRequest{SessionId: "s", Follow: true})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
			test.end(t, a, cancel)
			_, err = stream.Recv()
			checkRefusal(t, err, test.want)
		})
	}
}
