package server_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/cmd/contextd/internal/server"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// transcript is a list of messages in OpenAI's form.
func transcript(question string) string {
	return fmt.Sprintf(`[
  {"role": "system", "content": "You are an agent."},
  {"role": "user", "content": %q},
  {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{\"depth\": 1.0}"}}]},
  {"role": "tool", "tool_call_id": "c1", "content": "bin"},
  {"role": "assistant", "content": "There is bin."}
]`, question)
}

func importOf(id, data string) func(*testing.T, *api) error {
	return func(t *testing.T, a *api) error {
		_, err := a.importInto(t, id, data)
		return err
	}
}

// importInto sends the file in small pieces.
func (a *api) importInto(t *testing.T, id, data string) (*contextdv1.ImportTranscriptResponse, error) {
	t.Helper()
	return a.importAs(t, id, "openai", data)
}

func (a *api) importAs(t *testing.T, id, harness, data string) (*contextdv1.ImportTranscriptResponse, error) {
	t.Helper()
	stream, err := a.transcripts.ImportTranscript(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	part := &contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Header{Header: &contextdv1.ImportHeader{SessionId: id, Harness: harness}}}
	for {
		if err := stream.Send(part); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if data == "" {
			break
		}
		n := min(len(data), 1000)
		part = &contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Data{Data: []byte(data[:n])}}
		data = data[n:]
	}
	return stream.CloseAndRecv()
}

func TestImport(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t), func(o *server.Options) { o.Limits.MaxBatchEvents = 2 })
		first, err := a.importInto(t, "s", transcript("What is there?"))
		if err != nil {
			t.Fatal(err)
		}
		if first.GetEvents() != 5 || first.GetSession().GetHeadSeq() != 5 || first.GetSession().GetTurns() != 2 {
			t.Errorf("imported %v", first)
		}
		again, err := a.importInto(t, "s", transcript("What is there?"))
		if err != nil {
			t.Fatal(err)
		}
		if again.GetEvents() != 0 || again.GetSession().GetHeadSeq() != 5 {
			t.Errorf("imported again: %v", again)
		}
		events := a.read(t, "s")
		if got := string(events[2].GetMessage().GetBlocks()[0].GetToolCall().GetArgumentsJson()); got != `{"depth": 1.0}` {
			t.Errorf("arguments became %s", got)
		}
	})
}

// TestImportDatabase: the daemon reads no database, whatever it is said to be.
func TestImportDatabase(t *testing.T) {
	data, err := os.ReadFile("../../../../internal/harness/cursor/testdata/state.vscdb")
	if err != nil {
		t.Fatal(err)
	}
	a := serve(t, memlog.New())
	for _, harness := range []string{"", "cursor"} {
		_, err := a.importAs(t, "s", harness, string(data))
		if st := status.Convert(err); st.Code() != codes.InvalidArgument || !strings.Contains(st.Message(), "contextd import") {
			t.Errorf("as %q: %v", harness, err)
		}
	}
}

// claudeTranscript is one of Claude Code with so many messages.
func claudeTranscript(session string, messages int) string {
	var out strings.Builder
	for i := range messages {
		fmt.Fprintf(&out, `{"type":"user","uuid":"%s-%d","sessionId":%q,"timestamp":"2026-05-01T08:00:00Z","message":{"role":"user","content":"message %d"}}`+"\n", session, i, session, i)
	}
	return out.String()
}

// TestImportBound: reasoning that is bound to a harness's prompt is in the log and in exports, but in no context.
func TestImportBound(t *testing.T) {
	for model, shown := range map[string]bool{"claude-opus-5-5": false, "claude-opus-4-1": true} {
		a := serve(t, memlog.New())
		const line = `{"type":%q,"uuid":%q,"sessionId":"s","timestamp":"2026-05-01T08:00:00Z","message":{"role":%q,"model":%q,"content":%s}}` + "\n"
		data := fmt.Sprintf(line, "user", "u", "user", "", `"Go."`) +
			fmt.Sprintf(line, "assistant", "a", "assistant", model, `[{"type":"thinking","thinking":"Hm.","signature":"c2VhbA=="},{"type":"text","text":"Gone."}]`)
		for range 2 {
			if _, err := a.importAs(t, "s", "claude", data); err != nil {
				t.Fatal(err)
			}
		}
		a.append(t, "s", user("And now?"))
		got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Format: contextdv1.Format_FORMAT_ANTHROPIC, Budget: tight()})
		if err != nil {
			t.Fatal(err)
		}
		context := fmt.Sprint(got.messages)
		if !strings.Contains(context, "Gone.") || strings.Contains(context, "c2VhbA==") != shown {
			t.Errorf("%s: the context is %s", model, context)
		}
		if exported := string(a.exportClaude(t, "s")); !strings.Contains(exported, "c2VhbA==") {
			t.Errorf("%s: it is exported as %s", model, exported)
		}
	}
}

// TestImportIntoAnother: a session takes the transcript that it holds, grown or not, and
// no other; what is refused leaves it as it was.
func TestImportIntoAnother(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		take := func(id, harness, data string, events uint32) {
			t.Helper()
			got, err := a.importAs(t, id, harness, data)
			if err != nil || got.GetEvents() != events {
				t.Fatalf("%d events, %v; want %d", got.GetEvents(), err, events)
			}
		}
		refuse := func(id, harness, data, why string) {
			t.Helper()
			before := a.session(t, id).GetHeadSeq()
			_, err := a.importAs(t, id, harness, data)
			if st := status.Convert(err); st.Code() != codes.InvalidArgument || !strings.Contains(st.Message(), why) {
				t.Errorf("import into %s: %v, want %q", id, err, why)
			}
			if after := a.session(t, id).GetHeadSeq(); after != before {
				t.Errorf("%s has %d events, had %d", id, after, before)
			}
		}
		take("claude", "claude", claudeTranscript("one", 3), 3)
		take("claude", "claude", claudeTranscript("one", 5), 2)
		take("claude", "claude", claudeTranscript("one", 2), 0)
		refuse("claude", "claude", claudeTranscript("two", 3), `holds "one" of its harness, and the transcript is of "two"`)
		refuse("claude", "openai", transcript("What is there?"), "holds something else")

		// Without ids of the harness's own.
		chat := func(messages ...string) string {
			return `[{"role":"user","content":"` + strings.Join(messages, `"},{"role":"user","content":"`) + `"}]`
		}
		take("chat", "openai", chat("a", "b"), 2)
		take("chat", "openai", chat("a", "b", "c"), 1)
		refuse("chat", "claude", claudeTranscript("one", 3), "holds something else")

		// A session that a client has filled, or only made.
		a.append(t, "own", user("hello"))
		refuse("own", "openai", chat("a"), "holds something else")
		if _, err := a.CreateSession(t.Context(), &contextdv1.CreateSessionRequest{SessionId: "empty"}); err != nil {
			t.Fatal(err)
		}
		take("empty", "openai", chat("a"), 1)
	})
}

// TestImportReadOtherwise: a transcript that an earlier version read otherwise is refused with what differs and
// what to do, and the session stays as it was.
func TestImportReadOtherwise(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t), func(o *server.Options) { o.Limits.MaxBatchEvents = 2 })
		now := claudeTranscript("one", 7)
		lines := strings.SplitAfter(claudeTranscript("one", 6), "\n")
		for id, of := range map[string]struct {
			then string // what an earlier version read, as a file that says it now
			code codes.Code
			want []string
		}{
			"content":      {strings.Replace(strings.Join(lines, ""), "message 3", "another", 1), codes.AlreadyExists, []string{"event 4", `"one-3"`}},
			"left out":     {strings.Join(lines[:3], "") + strings.Join(lines[4:], ""), codes.InvalidArgument, []string{`has no event "one-3"`, `before "one-4"`}},
			"begins later": {strings.Join(lines[1:], ""), codes.InvalidArgument, []string{`has no event "one-0"`, `before "one-1"`}},
		} {
			id = strings.ReplaceAll(id, " ", "-")
			first, err := a.importAs(t, id, "claude", of.then)
			if err != nil {
				t.Fatal(err)
			}
			_, err = a.importAs(t, id, "claude", now)
			st := status.Convert(err)
			for _, want := range append(of.want, "header.session_id: must be another: "+id, "an earlier version of contextd read it otherwise") {
				if st.Code() != of.code || !strings.Contains(st.Message(), want) {
					t.Errorf("%s: %v, want %q", id, err, want)
				}
			}
			if after := a.session(t, id).GetHeadSeq(); after != first.GetSession().GetHeadSeq() {
				t.Errorf("%s has %d events, had %d", id, after, first.GetSession().GetHeadSeq())
			}
		}
	})
}

// TestImportHasRoom: a transcript that a session has no room for is refused as a whole;
// what is there already takes none.
func TestImportHasRoom(t *testing.T) {
	a := serve(t, memlog.New(), func(o *server.Options) { o.Limits.MaxSessionEvents, o.Limits.MaxBatchEvents = 4, 2 })
	if _, err := a.importAs(t, "s", "claude", claudeTranscript("one", 3)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"s", "new"} {
		_, err := a.importAs(t, id, "claude", claudeTranscript("one", 5))
		if st := status.Convert(err); st.Code() != codes.ResourceExhausted || !strings.Contains(st.Message(), "max_session_events") {
			t.Errorf("import into %s: %v", id, err)
		}
	}
	if got := a.session(t, "s").GetHeadSeq(); got != 3 {
		t.Errorf("the session has %d events", got)
	}
	if _, err := a.GetSession(t.Context(), &contextdv1.GetSessionRequest{SessionId: "new"}); status.Code(err) != codes.NotFound {
		t.Errorf("a session was made for nothing: %v", err)
	}
	if got, err := a.importAs(t, "s", "claude", claudeTranscript("one", 4)); err != nil || got.GetEvents() != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestImportCountsTheSessionsEnvelope: what a file says of the session as a whole takes room.
func TestImportCountsTheSessionsEnvelope(t *testing.T) {
	a := serve(t, memlog.New(), func(o *server.Options) { o.Limits.MaxSessionBytes = 4000 })
	file := func(title string) string {
		return `{"info":{"id":"ses_1","title":"` + title + `"},"messages":[{"info":{"id":"msg_1","role":"user"},"parts":[{"type":"text","text":"Hi."}]}]}`
	}
	_, err := a.importAs(t, "s", "opencode", file(strings.Repeat("x", 5000)))
	if st := status.Convert(err); st.Code() != codes.ResourceExhausted || !strings.Contains(st.Message(), "max_session_bytes") {
		t.Errorf("import of a long title: %v", err)
	}
	for range 2 {
		if _, err := a.importAs(t, "s", "opencode", file(strings.Repeat("x", 2500))); err != nil {
			t.Errorf("import of a shorter one: %v", err)
		}
	}
}

// TestImportTakesTheFirstInfo: a file may say twice what it says of the session as a whole.
func TestImportTakesTheFirstInfo(t *testing.T) {
	a := serve(t, memlog.New())
	file := `{"info":{"id":"ses_1","title":"a"},"messages":[{"info":{"id":"msg_1","role":"user"},"parts":[{"type":"text","text":"Hi."}]}],` +
		`"info":{"id":"ses_2","title":"b","version":"1"}}`
	got, err := a.importAs(t, "s", "opencode", file)
	if err != nil {
		t.Fatal(err)
	}
	if labels := got.GetSession().GetLabels(); labels["harness.session_id"] != "ses_1" || labels["harness.version"] != "" {
		t.Errorf("labels %v", labels)
	}
	if !strings.Contains(strings.Join(got.GetWarnings(), "\n"), "info") {
		t.Errorf("no warning of it: %q", got.GetWarnings())
	}
}

// TestImportLimits: what is over a limit of transcripts names it, and says whether
// waiting helps.
func TestImportLimits(t *testing.T) {
	a := serve(t, memlog.New(), func(o *server.Options) { o.Limits.ImportMemory = 4 << 20 })
	for want, data := range map[string]string{
		"import_memory":                 claudeTranscript("one", 5000),
		"levels of nesting in a record": `{"type":"user","y":"` + strings.Repeat("y", 300<<10) + `","x":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + "}\n",
		"values in a record":            `{"type":"user","x":[1` + strings.Repeat(",1", 260_000) + "]}\n",
		"lines that are not JSON":       strings.Repeat("x\n", 20_000),
	} {
		_, err := a.importAs(t, "s", "claude", data)
		st := status.Convert(err)
		if st.Code() != codes.ResourceExhausted || !strings.Contains(st.Message(), want) || !strings.Contains(st.Message(), "line ") {
			t.Errorf("want %q: %v", want, err)
		}
		for _, detail := range st.Details() {
			if _, retry := detail.(*errdetails.RetryInfo); retry {
				t.Errorf("%s: waiting does not help", want)
			}
		}
	}
	if _, err := a.importAs(t, "s", "claude", claudeTranscript("one", 500)); err != nil {
		t.Errorf("what was refused was not given back: %v", err)
	}
}
