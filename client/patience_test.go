package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// refusing is a connection on which the first calls fail.
type refusing struct {
	grpc.ClientConnInterface
	errs  []error
	calls []time.Duration // when each came, since the first
	args  []any
	begun time.Time
}

func (r *refusing) Invoke(_ context.Context, _ string, args, _ any, _ ...grpc.CallOption) error {
	r.args = append(r.args, args)
	if len(r.calls) == 0 {
		r.begun = time.Now()
	}
	r.calls = append(r.calls, time.Since(r.begun))
	if n := len(r.calls); n <= len(r.errs) {
		return r.errs[n-1]
	}
	return nil
}

func refusal(code codes.Code, reason string, after time.Duration) error {
	st := status.New(code, "not now")
	if reason != "" {
		st, _ = st.WithDetails(&errdetails.ErrorInfo{Reason: reason})
	}
	if after > 0 {
		st, _ = st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	}
	return st.Err()
}

func many(n int, err error) []error {
	out := make([]error, n)
	for i := range out {
		out[i] = err
	}
	return out
}

// A call comes back when it is asked to, not before, for as long as the patience lasts, and only
// where another try may change the answer.
func TestPatience(t *testing.T) {
	draining := refusal(codes.Unavailable, "DRAINING", 400*time.Millisecond)
	for _, test := range []struct {
		name     string
		errs     []error
		patience time.Duration
		fails    bool
		least    int // calls
		most     int
		total    time.Duration // at most
	}{
		{name: "let in at once", least: 1, most: 1},
		{name: "asked to wait twice", errs: many(2, draining), least: 3, most: 3, total: 800 * time.Millisecond},
		{name: "nobody answers for a while", errs: many(5, refusal(codes.Unavailable, "", 0)), least: 6, most: 6, total: 10 * time.Second},
		{name: "nobody ever answers", errs: many(1000, refusal(codes.Unavailable, "", 0)), fails: true, least: 10, most: 60, total: DefaultPatience},
		{name: "a wait beyond what is left", errs: many(1, refusal(codes.ResourceExhausted, "DISK_FULL", time.Minute)), fails: true, least: 1, most: 1},
		{name: "refused for good", errs: many(1, refusal(codes.InvalidArgument, "INVALID_FIELD", 0)), fails: true, least: 1, most: 1},
		{name: "unavailable for good", errs: many(1, refusal(codes.Unavailable, "STORE_FAILED", 0)), fails: true, least: 1, most: 1},
		{name: "no patience", errs: many(1, draining), patience: -1, fails: true, least: 1, most: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := &refusing{errs: test.errs}
				c, err := New(Options{Conn: conn, Patience: test.patience})
				if err != nil {
					t.Fatal(err)
				}
				_, err = c.GetSession(t.Context(), &contextdv1.GetSessionRequest{SessionId: "s"})
				if (err != nil) != test.fails {
					t.Errorf("the call ends with %v", err)
				}
				if n := len(conn.calls); n < test.least || n > test.most {
					t.Errorf("%d calls, want %d to %d", n, test.least, test.most)
				}
				if last := conn.calls[len(conn.calls)-1]; last > test.total {
					t.Errorf("the last call came after %s, want at most %s", last, test.total)
				}
				if test.errs != nil && !test.fails && errors.Is(test.errs[0], draining) && conn.calls[1] < 400*time.Millisecond {
					t.Errorf("the second call came after %s", conn.calls[1])
				}
			})
		})
	}
}

// A report of a model call that is repeated has one key, the caller's or one of its own.
// A call to revert the newest compaction that got no answer may have been done: another would revert the
// one before. One that names the compaction is repeated, and so is one that the daemon refused for now.
func TestTheNewestCompactionIsUndoneOnce(t *testing.T) {
	lost, draining := refusal(codes.Unavailable, "", 0), refusal(codes.Unavailable, "DRAINING", time.Second)
	for _, test := range []struct {
		seq   uint64
		err   error
		calls int
	}{{0, lost, 1}, {7, lost, 2}, {0, draining, 2}} {
		synctest.Test(t, func(t *testing.T) {
			conn := &refusing{errs: []error{test.err}}
			c, err := New(Options{Conn: conn})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.UndoCompaction(t.Context(), &contextdv1.UndoCompactionRequest{SessionId: "s", CompactionSeq: test.seq})
			if len(conn.calls) != test.calls || (err == nil) != (test.calls == 2) {
				t.Errorf("compaction %d: %d calls, want %d, after %v: %v", test.seq, len(conn.calls), test.calls, test.err, err)
			}
		})
	}
}

func TestARepeatedReportHasOneKey(t *testing.T) {
	for _, own := range []string{"", "own"} {
		synctest.Test(t, func(t *testing.T) {
			conn := &refusing{errs: many(2, refusal(codes.Unavailable, "DRAINING", time.Second))}
			c, err := New(Options{Conn: conn})
			if err != nil {
				t.Fatal(err)
			}
			report := &contextdv1.RecordModelCallRequest{SessionId: "s", IdempotencyKey: own}
			for range 2 {
				if _, err := c.RecordModelCall(t.Context(), report); err != nil {
					t.Fatal(err)
				}
			}
			var keys []string
			for _, args := range conn.args {
				keys = append(keys, args.(*contextdv1.RecordModelCallRequest).GetIdempotencyKey())
			}
			if len(keys) != 4 || keys[0] == "" || keys[1] != keys[0] || keys[2] != keys[0] || (own == "") == (keys[3] == keys[0]) || report.GetIdempotencyKey() != own {
				t.Errorf("with the key %q the requests have %q", own, keys)
			}
		})
	}
}

// Where the caller does not say how patient the client is, the environment does.
func TestPatienceOfTheEnvironment(t *testing.T) {
	for _, test := range []struct {
		text string
		want time.Duration
	}{
		{"", DefaultPatience},
		{"2", 2 * time.Second},
		{"0.5", 500 * time.Millisecond},
		{"1m30s", 90 * time.Second},
		{"1.5h250ms", 90*time.Minute + 250*time.Millisecond},
		{"0", -1},
		{"0s", -1},
	} {
		t.Setenv(PatienceEnv, test.text)
		c, err := New(Options{Conn: &refusing{}})
		if err != nil || time.Duration(c.patience) != test.want {
			t.Errorf("%q: %v, want %s", test.text, err, test.want)
		}
		c, err = New(Options{Conn: &refusing{}, Patience: time.Minute})
		if err != nil || time.Duration(c.patience) != time.Minute {
			t.Errorf("%q beats the caller: %v", test.text, err)
		}
	}
	for _, text := range []string{"soon", "-1s", "1d", "inf", " "} {
		t.Setenv(PatienceEnv, text)
		if _, err := New(Options{Conn: &refusing{}}); err == nil || !strings.Contains(err.Error(), PatienceEnv) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A caller that leaves waits no longer.
func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &refusing{errs: many(1000, refusal(codes.Unavailable, "", 0))}
		c, err := New(Options{Conn: conn})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		_, err = c.GetSession(ctx, &contextdv1.GetSessionRequest{SessionId: "s"})
		if err == nil || time.Since(begun) > time.Second {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
	})
}

// What the daemon says of an answer must agree with what came, in every part.
func TestCheck(t *testing.T) {
	held := messages(`{"a":1.0}`, `{"b":2}`)
	const other = "sha256:3f40c6ce3a4ab6d7cb61b2ed81a7a2e4acc16fdbc4f1ae03e5e8d45ef3b5ec52"
	hash := hashOf(held)
	for _, test := range []struct {
		name  string
		spoil func(h *contextdv1.ContextHeader, tr *contextdv1.ContextTrailer)
		fails bool
	}{
		{"all agrees", func(*contextdv1.ContextHeader, *contextdv1.ContextTrailer) {}, false},
		{"hash of the header", func(h *contextdv1.ContextHeader, _ *contextdv1.ContextTrailer) { h.ContextHash = other }, true},
		{"hash of the trailer", func(_ *contextdv1.ContextHeader, tr *contextdv1.ContextTrailer) { tr.ContextHash = other }, true},
		{"prefix hash", func(h *contextdv1.ContextHeader, _ *contextdv1.ContextTrailer) { h.PrefixHash = other }, true},
		{"count", func(h *contextdv1.ContextHeader, _ *contextdv1.ContextTrailer) { h.MessageCount = 3 }, true},
		{"skipped more than is held", func(h *contextdv1.ContextHeader, _ *contextdv1.ContextTrailer) { h.SkippedMessages = 2 }, true},
		{"skipped less and says nothing", func(h *contextdv1.ContextHeader, _ *contextdv1.ContextTrailer) { h.SkippedMessages = 0 }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &contextdv1.ContextHeader{MessageCount: 2, PrefixMessages: 2, ContextHash: hash, PrefixHash: hash, SkippedMessages: 1}
			tr := &contextdv1.ContextTrailer{MessageCount: 2, ContextHash: hash}
			test.spoil(h, tr)
			before := &Context{Header: &contextdv1.ContextHeader{PrefixMessages: 1}, Messages: held[:1]}
			made, err := next(before, []*contextdv1.AssembleContextResponse{
				{Part: &contextdv1.AssembleContextResponse_Header{Header: h}},
				{Part: &contextdv1.AssembleContextResponse_Chunk{Chunk: &contextdv1.MessageChunk{Messages: held[1:]}}},
				{Part: &contextdv1.AssembleContextResponse_Trailer{Trailer: tr}},
			})
			if errors.Is(err, ErrIntegrity) != test.fails {
				t.Errorf("%v: %v", made, err)
			}
			if err == nil && (len(made.Messages) != 2 || made.Sent != 1) {
				t.Errorf("%d messages, %d sent", len(made.Messages), made.Sent)
			}
		})
	}
	if _, err := next[*contextdv1.AssembleContextResponse](nil, nil); !errors.Is(err, ErrIntegrity) {
		t.Errorf("an empty answer is %v", err)
	}
}

func messages(lines ...string) (out []*contextdv1.RenderedMessage) {
	for i, l := range lines {
		out = append(out, &contextdv1.RenderedMessage{Index: uint32(i), Json: []byte(l), System: i == 0 && strings.HasPrefix(l, `{"system"`)})
	}
	return out
}

// The body has the bytes that came; marks are on copies, on the item that is named.
func TestBody(t *testing.T) {
	item := uint32(0)
	for _, test := range []struct {
		name   string
		c      Context
		params any
		want   string
	}{
		{"marks", Context{
			Format:   contextdv1.Format_FORMAT_ANTHROPIC,
			Messages: messages(`{"system":[{"type":"text","text":"a"}]}`, `{"role":"user","content":[{"type":"text","text":"b"},{"n":1e400}]}`),
			Header:   &contextdv1.ContextHeader{CacheBreakpoints: []*contextdv1.CacheBreakpoint{{MessageIndex: 0}, {MessageIndex: 1, ContentIndex: &item}}},
		}, struct {
			Model string `json:"model"`
		}{"<m>"}, `{"model":"<m>","system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}],` +
			`"messages":[{"role":"user","content":[{"type":"text","text":"b","cache_control":{"type":"ephemeral"}},{"n":1e400}]}]}`},
		{"a key of the cache", Context{
			Format: contextdv1.Format_FORMAT_OPENAI_RESPONSES, Messages: messages(`{"role":"system"}`, `{"n":1.0,"n":2}`),
			Header: &contextdv1.ContextHeader{PromptCacheKey: `k"`},
		}, nil, `{"prompt_cache_key":"k\"","input":[{"role":"system"},{"n":1.0,"n":2}]}`},
		{"nothing", Context{Format: contextdv1.Format_FORMAT_GEMINI, Header: &contextdv1.ContextHeader{}}, nil, `{"contents":[]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := hashOf(test.c.Messages)
			got, err := test.c.Body(test.params)
			if err != nil || string(got) != test.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, test.want)
			}
			if hashOf(test.c.Messages) != before {
				t.Error("the held messages were changed")
			}
		})
	}
	if _, err := (&Context{Header: &contextdv1.ContextHeader{}}).Body([]int{1}); err == nil {
		t.Error("params that are no object are accepted")
	}
}
