package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/client"
	"github.com/contextd/contextd/client/read"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// A client may be given to whatever takes the services of the API.
var (
	_ contextdv1.ContextServiceClient    = (*client.Client)(nil)
	_ contextdv1.CompactionServiceClient = (*client.Client)(nil)
	_ contextdv1.TranscriptServiceClient = (*client.Client)(nil)
)

// fill makes a session s of turns with a call and a long result each.
func fill(t *testing.T, c *client.Client, turns int) {
	t.Helper()
	appendTo(t, c, "s", client.System("You repair builds."), client.User("Why does make fail?"))
	for i := range turns {
		id := fmt.Sprintf("call_%d", i)
		appendTo(t, c, "s",
			client.Assistant("claude-sonnet-4-5", client.Text("I look."), client.Call(id, "read", []byte(`{"n": 1.0}`))),
			client.Result(id, strings.Repeat(fmt.Sprintf("line of result %d\n", i), 200), false))
	}
}

// Everything that is listed comes, whatever the page.
func TestPages(t *testing.T) {
	c, ctx := inMemory(t), t.Context()
	for i := range 5 {
		appendTo(t, c, fmt.Sprintf("s%d", i), client.User("Hello."))
	}
	var ids []string
	for s, err := range c.Sessions(ctx, &contextdv1.ListSessionsRequest{PageSize: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.GetSessionId())
	}
	if want := []string{"s0", "s1", "s2", "s3", "s4"}; !slices.Equal(ids, want) {
		t.Errorf("listed %v, want %v", ids, want)
	}
	for range 3 {
		if _, err := c.Assemble(ctx, &contextdv1.AssembleContextRequest{SessionId: "s0"}); err != nil {
			t.Fatal(err)
		}
		appendTo(t, c, "s0", client.User("More."))
	}
	for range 2 {
		if _, err := c.RecordModelCall(ctx, &contextdv1.RecordModelCallRequest{SessionId: "s0", InputTokens: 9}); err != nil {
			t.Fatal(err)
		}
	}
	var calls []uint32
	for m, err := range c.ModelCalls(ctx, &contextdv1.ListModelCallsRequest{SessionId: "s0", PageSize: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, m.GetNumber())
	}
	if !slices.Equal(calls, []uint32{1, 2}) {
		t.Errorf("calls %v, want 1 and 2", calls)
	}
	n := 0
	for p, err := range c.Projections(ctx, &contextdv1.ListProjectionsRequest{SessionId: "s0", PageSize: 1}) {
		if err != nil || p.GetProjectionId() == "" {
			t.Fatal(p, err)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d projections, want 3", n)
	}
	for _, err := range c.Sessions(ctx, &contextdv1.ListSessionsRequest{PageToken: "forged"}) {
		if !errors.Is(err, client.ErrInvalid) {
			t.Errorf("a forged page token is answered %v", err)
		}
	}
}

// Errors have their kind, the field at fault and what to do.
func TestErrors(t *testing.T) {
	c, ctx := inMemory(t), t.Context()
	appendTo(t, c, "s", client.System(strings.Repeat("You are careful. ", 200)), client.User("Hello."))
	_, invalid := c.Append(ctx, "s", client.User(""))
	_, missing := c.GetSession(ctx, &contextdv1.GetSessionRequest{SessionId: "none"})
	_, taken := c.CreateSession(ctx, &contextdv1.CreateSessionRequest{SessionId: "s"})
	_, head := c.AppendEvents(ctx, &contextdv1.AppendEventsRequest{
		SessionId: "s", Events: []*contextdv1.Event{client.User("a")}, ExpectedHead: proto.Uint64(1),
	})
	_, budget := c.Assemble(ctx, &contextdv1.AssembleContextRequest{SessionId: "s", Budget: &contextdv1.Budget{MaxTokens: 20}})
	for _, test := range []struct {
		name   string
		err    error
		kind   error
		code   codes.Code
		detail func(*client.Error) bool
	}{
		{"field", invalid, client.ErrInvalid, codes.InvalidArgument, func(e *client.Error) bool { return strings.HasPrefix(e.Field(), "events[0].") }},
		{"not found", missing, client.ErrNotFound, codes.NotFound, func(e *client.Error) bool { return e.Resource == "none" }},
		{"exists", taken, client.ErrAlreadyExists, codes.AlreadyExists, func(e *client.Error) bool { return e.Resource == "s" }},
		{"head", head, client.ErrHeadMismatch, codes.Aborted, func(e *client.Error) bool { return e.Number("head_seq") == 2 }},
		{"budget", budget, client.ErrBudgetExceeded, codes.FailedPrecondition, func(e *client.Error) bool { return len(e.Exceeded.GetParts()) > 0 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			var e *client.Error
			if !errors.Is(test.err, test.kind) || !errors.As(test.err, &e) {
				t.Fatalf("%v is no %v", test.err, test.kind)
			}
			if e.Code != test.code || status.Code(test.err) != test.code || !test.detail(e) {
				t.Errorf("%+v", e)
			}
			if errors.Is(test.err, client.ErrLogLost) {
				t.Error("every error is a lost log")
			}
		})
	}
}

// A log that is gone is noticed before a context lacks its beginning; who has the conversation
// appends it again.
func TestLostLog(t *testing.T) {
	d := start(t, "127.0.0.1:0", "--store", "memory")
	c := d.connect(t)
	ctx := t.Context()
	appendTo(t, c, "s", client.System("You repair builds."), client.User("Why?"))
	d.kill()
	start(t, d.address, "--store", "memory")
	if _, err := c.Append(ctx, "s", client.User("And now?")); !errors.Is(err, client.ErrLogLost) {
		t.Fatalf("the log is lost, and the answer is %v", err)
	}
	if _, err := c.Assemble(ctx, &contextdv1.AssembleContextRequest{SessionId: "s"}); !errors.Is(err, client.ErrLogLost) {
		t.Fatalf("the log is lost, and the answer is %v", err)
	}
	c.Forget("s")
	appendTo(t, c, "s", client.System("You repair builds."), client.User("Why?"), client.User("And now?"))
	got, err := c.Assemble(ctx, &contextdv1.AssembleContextRequest{SessionId: "s"})
	if err != nil || len(got.Messages) == 0 || got.Sent != len(got.Messages) {
		t.Errorf("after appending again: %v, %v", got, err)
	}
}

// Calls wait for a daemon that comes back, and nothing is appended twice.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	d := start(t, "127.0.0.1:0", "--data-dir", dir)
	c := d.connect(t)
	appendTo(t, c, "s", client.User("one"))
	watching, stop := context.WithCancel(t.Context())
	defer stop()
	numbers := make(chan uint64)
	watched := make(chan error, 1)
	go func() {
		defer close(numbers)
		after := []*contextdv1.LifecycleCursor{{SessionId: "s"}}
		for e, err := range c.Watch(watching, &contextdv1.WatchLifecycleRequest{After: after}) {
			if err != nil {
				watched <- err
				return
			}
			numbers <- e.GetNumber()
		}
	}()
	assemble := func() {
		t.Helper()
		if _, err := c.Assemble(t.Context(), &contextdv1.AssembleContextRequest{SessionId: "s"}); err != nil {
			t.Fatal(err)
		}
	}
	assemble()
	if n := <-numbers; n != 1 {
		t.Errorf("the first event has number %d", n)
	}

	d.kill()
	appended := make(chan error, 1)
	go func() {
		_, err := c.Append(t.Context(), "s", client.User("two"))
		appended <- err
	}()
	start(t, d.address, "--data-dir", dir)
	if err := <-appended; err != nil {
		t.Fatal(err)
	}
	assemble()
	if n := <-numbers; n != 2 {
		t.Errorf("after the restart comes event %d", n)
	}
	var texts []string
	for e, err := range c.Events(t.Context(), &contextdv1.ReadEventsRequest{SessionId: "s"}) {
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, e.GetMessage().GetBlocks()[0].GetText().GetText())
	}
	if !slices.Equal(texts, []string{"one", "two"}) {
		t.Errorf("the log has %q", texts)
	}
	stop()
	if err := <-watched; !errors.Is(err, context.Canceled) && status.Code(err) != codes.Canceled {
		t.Errorf("the watch ended with %v", err)
	}
}

// Who watches a session is not given the events of another that has its id.
func TestWatchOfAnotherLog(t *testing.T) {
	d := start(t, "127.0.0.1:0", "--store", "memory")
	c := d.connect(t)
	appendTo(t, c, "s", client.User("one"))
	if _, err := c.Assemble(t.Context(), &contextdv1.AssembleContextRequest{SessionId: "s"}); err != nil {
		t.Fatal(err)
	}
	var lost error
	after := []*contextdv1.LifecycleCursor{{SessionId: "s"}}
	for _, err := range c.Watch(t.Context(), &contextdv1.WatchLifecycleRequest{After: after}) {
		if lost = err; err == nil {
			d.kill()
			other := start(t, d.address, "--store", "memory").connect(t)
			appendTo(t, other, "s", client.User("other"))
		}
	}
	if !errors.Is(lost, client.ErrLogLost) {
		t.Errorf("the watch ended with %v", lost)
	}
}

// A daemon that is not there is one sentence that says where, and what to do.
func TestNoDaemon(t *testing.T) {
	c, err := client.New(client.Options{Address: "127.0.0.1:1", Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Append(t.Context(), "s", client.User("Hello."))
	if !errors.Is(err, client.ErrUnavailable) {
		t.Fatal(err)
	}
	for _, want := range []string{"no daemon answers at 127.0.0.1:1", "connection refused", `"contextd serve"`, client.AddressEnv} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// A socket that this user may not use is not taken for a daemon that is not there.
func TestNoPermission(t *testing.T) {
	failed := status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial unix /run/c.sock: connect: permission denied"`)
	err := client.AsError(failed, "unix:///run/c.sock")
	const want = "Unavailable: no permission to connect to unix:///run/c.sock (dial unix /run/c.sock: connect: permission denied): " +
		"call as the socket's owner, or have the daemon admit others by unix_socket_mode"
	if err.Error() != want || !errors.Is(err, client.ErrUnavailable) {
		t.Errorf("%v, want %s", err, want)
	}
}

// One side alone that speaks TLS is not taken for a daemon that is not there.
func TestTLSOnOneSide(t *testing.T) {
	for _, cause := range []string{
		"error reading server preface: EOF",
		"authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority",
		"authentication handshake failed: tls: first record does not look like a TLS handshake",
	} {
		failed := status.Error(codes.Unavailable, `connection error: desc = "transport: `+cause+`"`)
		err := client.AsError(failed, "127.0.0.1:7171")
		want := "Unavailable: no connection with 127.0.0.1:7171 (" + cause + "): if the daemon there speaks TLS, " +
			"CONTEXTD_CA must name the authority of its certificate; if it does not, it must be empty"
		if err.Error() != want || !errors.Is(err, client.ErrUnavailable) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Credentials that are not given are those of the environment.
func TestCredentialsOfTheEnvironment(t *testing.T) {
	t.Setenv("CONTEXTD_CA", "none.pem")
	if _, err := client.New(client.Options{}); err == nil || !strings.Contains(err.Error(), "none.pem") {
		t.Errorf("CONTEXTD_CA is ignored: %v", err)
	}
}

// What makes no sense is refused before anything is sent.
func TestOptions(t *testing.T) {
	for name, o := range map[string]client.Options{
		"a certificate without a CA":     {Credentials: client.Credentials{Certificate: "a", Key: "b"}},
		"a certificate without its key":  {Credentials: client.Credentials{CA: client.SystemCA, Certificate: "a"}},
		"a CA for a socket":              {Address: "unix:///none.sock", Credentials: client.Credentials{CA: client.SystemCA}},
		"a token that others could read": {Address: "example.com:7171", Credentials: client.Credentials{TokenFile: "a"}},
		"a file that is not there":       {Credentials: client.Credentials{CA: "none.pem"}},
		"a token that is not there":      {Credentials: client.Credentials{TokenFile: "none"}},
		"an address without a port":      {Address: "localhost"},
		"a URL":                          {Address: "http://127.0.0.1:7171"},
	} {
		if c, err := client.New(o); err == nil {
			t.Errorf("%s is accepted", name)
			c.Close()
		}
	}
}

// A file that holds something other than a token is named before anything is sent.
func TestTokenOfSeveralLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tls.key")
	if err := os.WriteFile(file, []byte("a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{Credentials: client.Credentials{TokenFile: file}})
	if err == nil {
		c.Close()
	}
	if want := "token file: " + file + " must hold one line of ASCII, the token"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// No event is refused by the daemon, as an event that lacks what happened.
func TestNoEvent(t *testing.T) {
	c := inMemory(t)
	var refused *client.Error
	if _, err := c.Append(t.Context(), "s", nil); !errors.As(err, &refused) || !errors.Is(err, client.ErrInvalid) || refused.Field() != "events[0].kind" {
		t.Errorf("no event: %v", err)
	}
}

// A context that is read back and appended to another session is the same context there.
func TestContextsCanBeAppended(t *testing.T) {
	c, ctx := inMemory(t), t.Context()
	png := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89")
	image := &contextdv1.Block{Kind: &contextdv1.Block_Media{Media: &contextdv1.Media{MimeType: "image/png", Data: png}}}
	appendTo(t, c, "s",
		client.System("You repair builds."),
		client.Message(contextdv1.Role_ROLE_USER, client.Text("Why does \"make\" <fail>?"), image),
		client.Assistant("m", client.Text("I look."), client.Call("a", "read", []byte(`{"n": 1.0, "big": 1e400}`)), client.Call("b", "read", []byte(`{"cut`))),
		client.Result("a", "Done.\n", false), client.Result("b", "No JSON.", true),
		client.Assistant("m", client.Text("A semicolon."), client.Call("c", "list", nil)),
		client.Result("c", "", false),
		client.User("Thanks."))
	for _, format := range []contextdv1.Format{
		contextdv1.Format_FORMAT_ANTHROPIC, contextdv1.Format_FORMAT_OPENAI_CHAT,
		contextdv1.Format_FORMAT_OPENAI_RESPONSES, contextdv1.Format_FORMAT_GEMINI,
	} {
		t.Run(format.String(), func(t *testing.T) {
			assemble := func(session string) *client.Context {
				got, err := c.Assemble(ctx, &contextdv1.AssembleContextRequest{SessionId: session, Format: format, Budget: &contextdv1.Budget{MaxTokens: 100_000}})
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			first := assemble("s")
			var lines []byte
			for _, m := range first.Messages {
				lines = append(append(lines, m.GetJson()...), '\n')
			}
			events, err := read.Messages(format, lines)
			if err != nil {
				t.Fatal(err)
			}
			again := "s/" + format.String()
			appendTo(t, c, again, events...)
			second := assemble(again)
			for i, m := range second.Messages {
				if i >= len(first.Messages) || !bytes.Equal(m.GetJson(), first.Messages[i].GetJson()) {
					t.Fatalf("message %d is %s, not %s", i, m.GetJson(), first.Messages[min(i, len(first.Messages)-1)].GetJson())
				}
			}
			if len(second.Messages) != len(first.Messages) {
				t.Errorf("%d messages, not %d", len(second.Messages), len(first.Messages))
			}
		})
	}
}
