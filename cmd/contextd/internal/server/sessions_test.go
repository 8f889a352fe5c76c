package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/limit"
	"github.com/contextd/contextd/cmd/contextd/internal/server"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/log/tenantlog"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func TestSessionsKeepTheirSettings(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		req := &contextdv1.CreateSessionRequest{
			SessionId: "team/agent-1",
			Policy:    &contextdv1.Policy{Duplicates: &contextdv1.DuplicateResults{}},
			Labels:    map[string]string{"team": "a"},
			Budget:    &contextdv1.Budget{MaxTokens: 9000, SafetyMargin: proto.Float64(0), Tokenizer: "heuristic"},
		}
		created, err := a.CreateSession(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.GetSession(t.Context(), &contextdv1.GetSessionRequest{SessionId: "team/agent-1"})
		if err != nil {
			t.Fatal(err)
		}
		s := got.GetSession()
		if !proto.Equal(s, created.GetSession()) || !proto.Equal(s.GetPolicy(), req.GetPolicy()) || !proto.Equal(s.GetBudget(), req.GetBudget()) || s.GetLabels()["team"] != "a" {
			t.Errorf("session is %v", s)
		}
		a.append(t, "team/agent-1", user("hello"))
		context, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "team/agent-1"})
		if err != nil {
			t.Fatal(err)
		}
		if b := context.header.GetBudget(); b.GetTargetTokens() != 9000 || b.GetTokenizer() != "heuristic" {
			t.Errorf("assembled under %v, not the session's budget", b)
		}
	})
}

func TestListSessionsPages(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		for i := range 7 {
			_, err := a.CreateSession(t.Context(), &contextdv1.CreateSessionRequest{
				SessionId: fmt.Sprintf("s%d", i), Labels: map[string]string{"odd": fmt.Sprint(i % 2)},
			})
			if err != nil {
				t.Fatal(err)
			}
			for n := range i % 3 {
				a.append(t, fmt.Sprintf("s%d", i), user(strings.Repeat("x", n)+"y"))
			}
		}
		byEvents := contextdv1.SessionOrder_SESSION_ORDER_HEAD_SEQ
		tests := map[string]struct {
			req  *contextdv1.ListSessionsRequest
			want string
		}{
			"all":            {&contextdv1.ListSessionsRequest{}, "s0,s1,s2,s3,s4,s5,s6"},
			"by three":       {&contextdv1.ListSessionsRequest{PageSize: 3}, "s0,s1,s2|s3,s4,s5|s6"},
			"no empty page":  {&contextdv1.ListSessionsRequest{PageSize: 7}, "s0,s1,s2,s3,s4,s5,s6"},
			"labelled":       {&contextdv1.ListSessionsRequest{PageSize: 2, Labels: map[string]string{"odd": "1"}}, "s1,s3|s5"},
			"searched":       {&contextdv1.ListSessionsRequest{Query: "S3"}, "s3"},
			"by a label":     {&contextdv1.ListSessionsRequest{Query: "1", PageSize: 2}, "s1,s3|s5"},
			"not found":      {&contextdv1.ListSessionsRequest{Query: "s7"}, ""},
			"by size":        {&contextdv1.ListSessionsRequest{Order: byEvents}, "s2,s5,s1,s4,s0,s3,s6"},
			"by size, paged": {&contextdv1.ListSessionsRequest{Order: byEvents, PageSize: 3}, "s2,s5,s1|s4,s0,s3|s6"},
			"all at once":    {&contextdv1.ListSessionsRequest{Order: byEvents, Labels: map[string]string{"odd": "1"}, Query: "S", PageSize: 2}, "s5,s1|s3"},
			"labelled so no": {&contextdv1.ListSessionsRequest{Labels: map[string]string{"odd": "2"}}, ""},
		}
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				var pages []string
				for {
					page, err := a.ListSessions(t.Context(), test.req)
					if err != nil {
						t.Fatal(err)
					}
					var ids []string
					for _, s := range page.GetSessions() {
						ids = append(ids, s.GetSessionId())
					}
					pages = append(pages, strings.Join(ids, ","))
					if test.req.PageToken = page.GetNextPageToken(); test.req.GetPageToken() == "" {
						break
					}
				}
				if got := strings.Join(pages, "|"); got != test.want {
					t.Errorf("pages are %s; want %s", got, test.want)
				}
			})
		}
	})
}

// BenchmarkListSessions lists the first page of 100,000 sessions, in the order of their ids and
// in another, which looks at all of them.
func BenchmarkListSessions(b *testing.B) {
	b.Run("memory", func(b *testing.B) {
		store := memlog.New()
		makeSessions(b, store)
		listSessions(b, store)
	})
	b.Run("disk", func(b *testing.B) {
		dir := b.TempDir()
		store, err := disklog.Open(dir, disklog.Options{})
		if err != nil {
			b.Fatal(err)
		}
		makeSessions(b, store)
		if err := store.Close(); err != nil { // what was just made may be in memory still
			b.Fatal(err)
		}
		if store, err = disklog.Open(dir, disklog.Options{}); err != nil {
			b.Fatal(err)
		}
		listSessions(b, store)
	})
}

// makeSessions makes 100,000 sessions, many at once: each waits for the disk.
func makeSessions(b *testing.B, store eventlog.Store) {
	b.Helper()
	const all, writers = 100_000, 256
	var group errgroup.Group
	for w := range writers {
		group.Go(func() error {
			for i := w; i < all; i += writers {
				if _, err := store.CreateSession(b.Context(), eventlog.Session{ID: fmt.Sprintf("session-%06d", i), CreateTime: time.Unix(int64(i*7919%all), 0)}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

func listSessions(b *testing.B, store eventlog.Store) {
	b.Helper()
	a := serve(b, store)
	for name, req := range map[string]*contextdv1.ListSessionsRequest{
		"by id":          {PageSize: 200},
		"newest first":   {PageSize: 200, Order: contextdv1.SessionOrder_SESSION_ORDER_UPDATE_TIME},
		"searched":       {PageSize: 200, Query: "99999"},
		"both, 2nd page": {PageSize: 200, Query: "9", Order: contextdv1.SessionOrder_SESSION_ORDER_UPDATE_TIME},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				page, err := a.ListSessions(b.Context(), req)
				if err != nil {
					b.Fatal(err)
				}
				if strings.HasSuffix(name, "2nd page") {
					if _, err := a.ListSessions(b.Context(), &contextdv1.ListSessionsRequest{PageSize: 200, Query: req.GetQuery(), Order: req.GetOrder(), PageToken: page.GetNextPageToken()}); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func TestForks(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		a.append(t, "s", conversation()...)
		for child, at := range map[string]uint64{"all": 0, "two": 2} {
			resp, err := a.ForkSession(t.Context(), &contextdv1.ForkSessionRequest{SessionId: "s", NewSessionId: child, AtSeq: at})
			if err != nil {
				t.Fatal(err)
			}
			if got := resp.GetSession(); got.GetParentSessionId() != "s" || got.GetHeadSeq() != got.GetForkSeq() {
				t.Errorf("fork is %v", got)
			}
		}
		if _, err := a.DeleteSession(t.Context(), &contextdv1.DeleteSessionRequest{SessionId: "s"}); err != nil {
			t.Fatal(err)
		}
		a.append(t, "two", user("another way"))
		if got := seqsOf(a.read(t, "all")); got != "1 2 3 4" {
			t.Errorf("all holds %s", got)
		}
		if got := seqsOf(a.read(t, "two")); got != "1 2 3" {
			t.Errorf("two holds %s", got)
		}
	})
}

func TestLimits(t *testing.T) {
	limits := func(change func(l *limit.Limits)) option {
		return func(o *server.Options) { change(&o.Limits) }
	}
	one := []*contextdv1.Event{user("12345678")}
	tests := map[string]struct {
		limits option
		// fine is sent first.
		fine, over func(t *testing.T, a *api) error
		field      string
	}{
		"events of a batch": {
			limits(func(l *limit.Limits) { l.MaxBatchEvents = 2 }),
			try("s", user("1"), user("2")), try("s", user("1"), user("2"), user("3")), "events",
		},
		"bytes of an event": {
			limits(func(l *limit.Limits) { l.MaxEventBytes = 10 }),
			try("s", user("1234567890")), try("s", user("1"), user(strings.Repeat("x", 11+64<<10))), "events[1]",
		},
		"bytes of a batch": {
			limits(func(l *limit.Limits) { l.MaxEventBytes, l.MaxBatchBytes = 1000, 1000 }),
			try("s", user(strings.Repeat("x", 900))), try("s", user(strings.Repeat("x", 600)), user(strings.Repeat("x", 600))), "events",
		},
		"events of a session": {
			limits(func(l *limit.Limits) { l.MaxSessionEvents = 3 }),
			try("s", user("1"), user("2")), try("s", user("3"), user("4")), "session_id",
		},
		"bytes of a session": {
			limits(func(l *limit.Limits) { l.MaxSessionBytes = 100 }),
			try("s", user(strings.Repeat("x", 60))), try("s", user(strings.Repeat("x", 60))), "session_id",
		},
		"sessions, by appending":   {limits(func(l *limit.Limits) { l.MaxSessions = 1 }), try("s", one...), try("t", one...), "session_id"},
		"sessions, by creating":    {limits(func(l *limit.Limits) { l.MaxSessions = 1 }), try("s", one...), create("t"), "session_id"},
		"sessions, by forking":     {limits(func(l *limit.Limits) { l.MaxSessions = 1 }), try("s", one...), fork("s", "t"), "session_id"},
		"sessions of all":          {limits(func(l *limit.Limits) { l.MaxStoreSessions = 1 }), try("s", one...), create("t"), "session_id"},
		"bytes of a tenant":        {limits(func(l *limit.Limits) { l.MaxTenantBytes = 20 }), try("s", one...), try("t", one...), "session_id"},
		"bytes of all":             {limits(func(l *limit.Limits) { l.MaxStoreBytes = 20 }), try("s", one...), try("s", one...), "session_id"},
		"bytes of all, by forking": {limits(func(l *limit.Limits) { l.MaxStoreBytes = 20 }), try("s", one...), fork("s", "t"), "session_id"},
		"bytes of an import":       {limits(func(l *limit.Limits) { l.MaxImportBytes = 10 }), try("s", one...), importOf("s", strings.Repeat("x", 11)), "data"},
		"an event of an import":    {limits(func(l *limit.Limits) { l.MaxEventBytes = 8 }), try("s", one...), importOf("s", transcript(strings.Repeat("x", 66<<10))), "data"},
		"sessions, by an import":   {limits(func(l *limit.Limits) { l.MaxSessions = 1 }), try("s", one...), importOf("t", transcript("hello")), "session_id"},
		"events, by an import":     {limits(func(l *limit.Limits) { l.MaxSessionEvents = 1 }), try("s", one...), importOf("t", transcript("hello")), "session_id"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := serve(t, stores["memory"](t), test.limits)
			if err := test.fine(t, a); err != nil {
				t.Fatalf("within the limit: %v", err)
			}
			before := len(a.read(t, "s"))
			checkRefusal(t, test.over(t, a), badInput{code: codes.ResourceExhausted, reason: apierr.ReasonLimit, field: test.field})
			if after := len(a.read(t, "s")); after != before {
				t.Errorf("the log went from %d to %d events", before, after)
			}
		})
	}
}

func try(id string, events ...*contextdv1.Event) func(*testing.T, *api) error {
	return func(t *testing.T, a *api) error {
		_, err := a.AppendEvents(t.Context(), &contextdv1.AppendEventsRequest{SessionId: id, Events: events})
		return err
	}
}

func create(id string) func(*testing.T, *api) error {
	return func(t *testing.T, a *api) error {
		_, err := a.CreateSession(t.Context(), &contextdv1.CreateSessionRequest{SessionId: id})
		return err
	}
}

func fork(parent, child string) func(*testing.T, *api) error {
	return func(t *testing.T, a *api) error {
		return forking(parent, child, 0)(t.Context(), a)
	}
}

// TestSessionQuota counts what there is when the daemon starts, and gives places
// back.
func TestSessionQuota(t *testing.T) {
	store := stores["memory"](t)
	first := serve(t, unclosed{store})
	first.append(t, "old", user("x"))
	a := serve(t, store, func(o *server.Options) { o.Limits.MaxSessions = 2 })
	a.append(t, "new", user("x"))
	a.append(t, "new", user("y"))
	refused := badInput{code: codes.ResourceExhausted, reason: apierr.ReasonLimit, field: "session_id"}
	checkRefusal(t, create("third")(t, a), refused)
	if err := create("new")(t, a); err == nil {
		t.Error("a session was made twice")
	}
	if _, err := a.DeleteSession(t.Context(), &contextdv1.DeleteSessionRequest{SessionId: "old"}); err != nil {
		t.Fatal(err)
	}
	if err := create("third")(t, a); err != nil {
		t.Errorf("with a place free: %v", err)
	}
	checkRefusal(t, create("fourth")(t, a), refused)
	other := serve(t, tenantlog.Of(unclosed{store}, "other"), func(o *server.Options) { o.All, o.Limits.MaxStoreSessions = store, 3 })
	if err := create("first")(t, other); err != nil {
		t.Errorf("of another tenant: %v", err)
	}
	checkRefusal(t, create("second")(t, other), refused)
}

// TestByteQuota counts what there is when the daemon starts, an append that is repeated once,
// and gives room back.
func TestByteQuota(t *testing.T) {
	store := stores["memory"](t)
	event := user("12345678") // 10 bytes with the id
	event.EventId = "e1"
	serve(t, unclosed{store}).append(t, "old", event)
	a := serve(t, store, func(o *server.Options) { o.Limits.MaxTenantBytes = 30 })
	for range 2 {
		a.append(t, "new", event)
		if used := a.server.Quotas()[0].Bytes(); used != 20 {
			t.Fatalf("%d bytes after two appends of 10", used)
		}
	}
	if _, err := a.ForkSession(t.Context(), &contextdv1.ForkSessionRequest{SessionId: "new", NewSessionId: "fork"}); err != nil {
		t.Fatal(err)
	}
	if err := try("new")(t, a); err == nil || a.server.Quotas()[0].Bytes() != 30 {
		t.Errorf("%d bytes after an append that failed: %v", a.server.Quotas()[0].Bytes(), err)
	}
	refused := badInput{code: codes.ResourceExhausted, reason: apierr.ReasonLimit, field: "session_id"}
	checkRefusal(t, try("old", user("x"))(t, a), refused)
	if _, err := a.DeleteSession(t.Context(), &contextdv1.DeleteSessionRequest{SessionId: "fork"}); err != nil {
		t.Fatal(err)
	}
	a.append(t, "old", user("123"))
	sessions, err := store.ListSessions(t.Context(), eventlog.SessionQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var bytes uint64
	for _, s := range sessions {
		bytes += s.LogBytes
	}
	if used := a.server.Quotas()[0].Bytes(); used != int64(bytes) {
		t.Errorf("%d bytes are counted, of %d", used, bytes)
	}
	checkRefusal(t, try("old", user("12345"))(t, a), refused)
	a.clock.seconds.Add(60) // after which the bytes are counted again
	checkRefusal(t, try("old", user("12345"))(t, a), refused)
}

// TestByteQuotaCountsArtifacts refuses what adds to a store that projections have filled.
func TestByteQuotaCountsArtifacts(t *testing.T) {
	store := stores["memory"](t)
	const limit = 2000
	a := serve(t, store, func(o *server.Options) { o.Limits.MaxTenantBytes = limit })
	assembled := func(preview bool) error {
		_, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Preview: preview})
		return err
	}
	a.append(t, "s", user("x"))
	for range 10 {
		if err := assembled(false); err != nil {
			t.Fatal(err)
		}
	}
	a.clock.seconds.Add(60)
	s, err := store.Session(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if used := a.server.Quotas()[0].Bytes(); used <= limit || used != int64(s.LogBytes+s.ArtifactBytes) {
		t.Errorf("%d bytes are counted, of %d in the log and %d beside it", used, s.LogBytes, s.ArtifactBytes)
	}
	refused := badInput{code: codes.ResourceExhausted, reason: apierr.ReasonLimit, field: "session_id"}
	checkRefusal(t, try("s", user("y"))(t, a), refused)
	checkRefusal(t, assembled(false), refused)
	_, err = a.RecordModelCall(t.Context(), &contextdv1.RecordModelCallRequest{SessionId: "s", Model: "m"})
	checkRefusal(t, err, refused)
	if err := assembled(true); err != nil {
		t.Errorf("a preview stores nothing: %v", err)
	}
	if _, err := a.DeleteSession(t.Context(), &contextdv1.DeleteSessionRequest{SessionId: "s"}); err != nil {
		t.Fatal(err)
	}
	if err := try("s", user("y"))(t, a); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// unclosed leaves a store open for the next server.
type unclosed struct{ eventlog.Store }

func (unclosed) Close() error { return nil }
